//! Resource quantities (`k8s.io/apimachinery/pkg/api/resource/quantity.go`, `suffix.go`).

use crate::cluster::objects::QuantityText;

const NANO: i128 = 1_000_000_000;

/// Upstream caps a binary quantity here, and works with 64 bits; nothing real comes near.
const LARGEST: i128 = i64::MAX as i128 * NANO;

/// An amount of a resource, in billionths of its unit (cores, bytes, pieces).
///
/// A finer amount is rounded up in magnitude, as upstream does; one beyond 2⁶³−1 units is capped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(i128);

/// Text that is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a resource quantity")]
pub struct QuantityError(pub String);

impl Quantity {
    /// Whole units, rounded up (`Value`).
    pub fn value(self) -> i128 {
        ceil_away(self.0, NANO)
    }

    /// Thousandths, rounded up (`MilliValue`).
    pub fn milli(self) -> i128 {
        ceil_away(self.0, NANO / 1000)
    }

    /// The sum, capped.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0).clamp(-LARGEST, LARGEST))
    }

    /// The difference, capped.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(Self(-other.0))
    }

    /// One unit.
    pub const ONE: Self = Self(NANO);
}

impl std::fmt::Display for Quantity {
    /// As people write it: whole units, in the largest power of 1024 that leaves a whole number, or the largest fraction
    /// that does.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 % NANO != 0 {
            let fractions = [(NANO / 1000, "m"), (NANO / 1_000_000, "u")];
            let found = fractions.into_iter().find(|(unit, _)| self.0 % unit == 0);
            let (unit, suffix) = found.unwrap_or((1, "n"));
            return write!(formatter, "{}{suffix}", self.0 / unit);
        }
        let whole = self.0 / NANO;
        let (power, suffix) = [(30, "Gi"), (20, "Mi"), (10, "Ki")]
            .into_iter()
            .find(|(power, _)| whole != 0 && whole % (1_i128 << power) == 0)
            .unwrap_or((0, ""));
        write!(formatter, "{}{suffix}", whole >> power)
    }
}

/// Divides, rounding away from zero.
fn ceil_away(amount: i128, unit: i128) -> i128 {
    amount / unit + if amount % unit == 0 { 0 } else { amount.signum() }
}

/// The factor that a suffix stands for: a power of ten, or a power of two.
enum Factor {
    Ten(i64),
    Two(u32),
}

fn factor(suffix: &str) -> Option<Factor> {
    Some(match suffix {
        "n" => Factor::Ten(-9),
        "u" => Factor::Ten(-6),
        "m" => Factor::Ten(-3),
        "" => Factor::Ten(0),
        "k" => Factor::Ten(3),
        "M" => Factor::Ten(6),
        "G" => Factor::Ten(9),
        "T" => Factor::Ten(12),
        "P" => Factor::Ten(15),
        "E" => Factor::Ten(18),
        "Ki" => Factor::Two(10),
        "Mi" => Factor::Two(20),
        "Gi" => Factor::Two(30),
        "Ti" => Factor::Two(40),
        "Pi" => Factor::Two(50),
        "Ei" => Factor::Two(60),
        _ => Factor::Ten(suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

impl std::str::FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse(text).ok_or_else(|| QuantityError(text.to_owned()))
    }
}

impl TryFrom<&QuantityText> for Quantity {
    type Error = QuantityError;

    fn try_from(text: &QuantityText) -> Result<Self, QuantityError> {
        text.0.parse()
    }
}

fn parse(text: &str) -> Option<Quantity> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let digits_end = |text: &str| text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (whole, rest) = rest.split_at(digits_end(rest));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits_end(rest)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (shift, multiplier) = match factor(suffix)? {
        Factor::Ten(exponent) => (exponent, 1),
        Factor::Two(exponent) => (0, 1_i128 << exponent),
    };
    let digits: Vec<i128> = whole
        .bytes()
        .chain(fraction.bytes())
        .map(|digit| i128::from(digit - b'0'))
        .collect();
    let point = shift.saturating_add(i64::try_from(whole.len()).ok()?);
    let magnitude = scale(&digits, point, multiplier * NANO);
    Some(Quantity(if negative { -magnitude } else { magnitude }))
}

/// `0.digits` × 10^`point` × `unit`, rounded up, and capped at [`LARGEST`].
fn scale(digits: &[i128], point: i64, unit: i128) -> i128 {
    // No further power of ten than this changes a capped or a rounded number.
    const FAR: usize = 64;
    let before = usize::try_from(point).unwrap_or(0).min(digits.len().saturating_add(FAR));
    let mut whole: i128 = 0;
    for index in 0..before {
        whole = (whole * 10 + digits.get(index).unwrap_or(&0)).min(LARGEST);
    }
    // Rounding down at each digit from the right rounds down once; a remainder anywhere means that it was not exact.
    let gap = usize::try_from(point.min(0).unsigned_abs()).unwrap_or(FAR).min(FAR);
    let mut part: i128 = 0;
    let mut inexact = false;
    for digit in digits.iter().skip(before).rev().chain(std::iter::repeat_n(&0, gap)) {
        let sum = part + digit * unit;
        inexact |= sum % 10 != 0;
        part = sum / 10;
    }
    whole.saturating_mul(unit).saturating_add(part + i128::from(inexact)).min(LARGEST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nano(text: &str) -> i128 {
        text.parse::<Quantity>().unwrap().0
    }

    #[test]
    fn shown_as_people_write_it() {
        for (text, shown) in [
            ("0", "0"),
            ("3", "3"),
            ("1500m", "1500m"),
            ("0.5", "500m"),
            ("1536Mi", "1536Mi"),
            ("2048Mi", "2Gi"),
            ("-1", "-1"),
            ("1k", "1000"),
            ("0.11005", "110050u"),
            ("0.1n", "1n"),
        ] {
            assert_eq!(text.parse::<Quantity>().unwrap().to_string(), shown);
        }
        let two = Quantity::ONE.plus(Quantity::ONE);
        assert_eq!(two.minus(Quantity::ONE), Quantity::ONE);
    }

    #[test]
    fn every_notation() {
        for (text, expected) in [
            ("0", 0),
            ("1", NANO),
            ("+1", NANO),
            ("-1.5", -3 * NANO / 2),
            ("100m", NANO / 10),
            ("1500u", 1_500_000),
            ("7n", 7),
            (".5", NANO / 2),
            ("5.", 5 * NANO),
            ("0.1n", 1),
            ("-0.1n", -1),
            ("2k", 2000 * NANO),
            ("2Ki", 2048 * NANO),
            ("1.5Gi", 1536 * 1024 * 1024 * NANO),
            ("0.5Mi", 512 * 1024 * NANO),
            ("1E", 1_000_000_000_000_000_000 * NANO),
            ("1E3", 1000 * NANO),
            ("12e6", 12_000_000 * NANO),
            ("12e-3", NANO * 12 / 1000),
            ("1e+2", 100 * NANO),
            ("1.0000000000000000000000000000000000000000000000000000000000", NANO),
            (
                "100000000000000.000000000000000000000000000000000000000000",
                100_000_000_000_000 * NANO,
            ),
            ("1e-9999999999", 1),
            ("0e9999999999", 0),
            ("9Ei", LARGEST),
            ("1e9999999999", LARGEST),
            ("99999999999999999999999999999999999999999999999999", LARGEST),
            ("3.3Ei", 3_804_640_965_202_595_020_800_000_000),
        ] {
            assert_eq!(nano(text), expected, "{text}");
        }
    }

    #[test]
    fn rounds_up() {
        for (text, value, milli) in [
            ("1", 1, 1000),
            ("1m", 1, 1),
            ("100u", 1, 1),
            ("1500m", 2, 1500),
            ("1.0001", 2, 1001),
            ("0", 0, 0),
        ] {
            let quantity: Quantity = text.parse().unwrap();
            assert_eq!((quantity.value(), quantity.milli()), (value, milli), "{text}");
        }
    }

    #[test]
    fn bad_text() {
        for text in [
            "", "+", "m", ".", "1.1.M", "1+1.0M", "0.1mi", "aoeu", ".5i", "1i", "-3.01e-", "1 ", " 1", "1Mi ", "1ki", "1K", "é", "1é",
            "--1", "0x1",
        ] {
            assert!(text.parse::<Quantity>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = text.parse::<Quantity>();
        }

        #[test]
        fn suffixes_agree(number in 0_u32.., exponent in 0_usize..6) {
            let decimal = ["k", "M", "G", "T", "P", "E"][exponent];
            prop_assert_eq!(nano(&format!("{number}{decimal}")), nano(&format!("{number}e{}", 3 * (exponent + 1))));
            prop_assert_eq!(nano(&format!("{number}{decimal}")), nano(&format!("{number}{}", "000".repeat(exponent + 1))));
            let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][exponent];
            let expected = (i128::from(number) << (10 * (exponent + 1))) * NANO;
            prop_assert_eq!(nano(&format!("{number}{binary}")), expected.min(LARGEST));
        }

        #[test]
        fn fractions_are_exact(number in 0_u64..1_000_000_000_000, places in 0_usize..12) {
            let text = format!("{number:0>width$}", width = places + 1);
            let (whole, fraction) = text.split_at(text.len() - places);
            let unit = 10_i128.pow(u32::try_from(places).unwrap());
            let expected = (i128::from(number) * NANO + unit - 1) / unit;
            prop_assert_eq!(nano(&format!("{whole}.{fraction}")), expected);
            prop_assert_eq!(nano(&format!("-{whole}.{fraction}")), -expected);
        }

        #[test]
        fn value_covers_the_amount(amount in -LARGEST..=LARGEST) {
            let quantity = Quantity(amount);
            prop_assert!(quantity.value().abs() * NANO >= amount.abs());
            prop_assert!((quantity.value().abs() - 1) * NANO < amount.abs() || amount == 0);
        }
    }
}
