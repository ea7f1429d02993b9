#!/usr/bin/env bash
# Packs the plugin for this machine as krew expects it, and writes the manifest with the archive's checksum.
#
#   krew/package.sh [URI-PREFIX]
#
# Leaves target/krew/kubectl-gpustack_ha-VERSION-OS-ARCH.tar.gz and target/krew/gpustack-ha.yaml. Try them with
#
#   kubectl krew install --manifest=target/krew/gpustack-ha.yaml --archive=target/krew/ARCHIVE
#
# PROFILE chooses the cargo profile (dist), URI-PREFIX where the archive will be published.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${PROFILE:-dist}
target=${CARGO_TARGET_DIR:-target}
binary=kubectl-gpustack_ha

version=v$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
if ! grep -qx "  version: $version" krew/gpustack-ha.yaml; then
  echo "error: krew/gpustack-ha.yaml does not say version: $version, as Cargo.toml does" >&2
  exit 1
fi
case $(uname -s) in
  Linux) os=linux ;;
  Darwin) os=darwin ;;
  *) echo "error: no archive for $(uname -s)" >&2; exit 1 ;;
esac
case $(uname -m) in
  x86_64 | amd64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) echo "error: no archive for $(uname -m)" >&2; exit 1 ;;
esac

cargo build --locked --profile "$profile" --bin "$binary"
directory=$profile
[ "$profile" = dev ] && directory=debug

out=target/krew
archive=$binary-$version-$os-$arch.tar.gz
uri=${1:-https://github.com/gpustack/kubectl-gpustack-ha/releases/download/$version}/$archive
mkdir -p "$out/root"
install -m 755 "$target/$directory/$binary" "$out/root/$binary"
install -m 644 LICENSE "$out/root/LICENSE"
tar -C "$out/root" -cf - "$binary" LICENSE | gzip -n > "$out/$archive"
rm -r "$out/root"

if command -v sha256sum > /dev/null; then
  sum=$(sha256sum "$out/$archive")
else
  sum=$(shasum -a 256 "$out/$archive")
fi
sed -e '/^#/d' -e "s|@OS@|$os|; s|@ARCH@|$arch|; s|@URI@|$uri|; s|@SHA256@|${sum%% *}|" krew/gpustack-ha.yaml > "$out/gpustack-ha.yaml"
echo "$out/$archive"
echo "$out/gpustack-ha.yaml"
