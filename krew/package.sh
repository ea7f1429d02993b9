#!/usr/bin/env bash
# Packs the plugin as krew expects it, and writes the manifest for what is packed.
#
#   krew/package.sh                       every target that this machine can build
#   krew/package.sh TARGET...             these, by Rust's names
#   krew/package.sh --pack TARGET BINARY  a binary that is built already
#   krew/package.sh --manifest            only the manifest, for the archives that lie in OUT
#   krew/package.sh --reproduce TARGET... the last commit, built from clones in two folders: are the bytes equal?
#
# What is built is unpacked again and, where it can be, run. Leaves OUT/kubectl-gpustack_ha-VERSION-OS-ARCH.tar.gz,
# OUT/checksums.txt and OUT/gpustack-ha.yaml. Try them with
#
#   kubectl krew install --manifest=OUT/gpustack-ha.yaml --archive=OUT/ARCHIVE
#
# Variables: OUT (target/krew), PROFILE of cargo (dist), URI where the archives will be published (the release's page),
# VERSION (that of Cargo.toml). Equal sources and tools give equal bytes, wherever the clone lies.
#
# Linux and Windows are built on Linux with rustup's targets and Debian's musl-tools, gcc-aarch64-linux-gnu with
# libc6-dev-arm64-cross, and gcc-mingw-w64-x86-64 (ring holds C); macOS on macOS. What is missing is said and left out.
# With qemu-user-static the other architecture's binary is run, too.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=kubectl-gpustack_ha
version=${VERSION:-v$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)}
out=${OUT:-target/krew}
profile=${PROFILE:-dist}
uri=${URI:-https://github.com/gpustack/kubectl-gpustack-ha/releases/download/$version}

die() { echo "error: $*" >&2; exit 1; }
have() { command -v "$1" > /dev/null 2>&1; }

# Of everything that carries a time: the commit's.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || echo 0)}
export SOURCE_DATE_EPOCH

# OS and architecture by Go's names, which are krew's.
platform() {
  case $1 in
    x86_64-*-linux-*) echo linux amd64 ;;
    aarch64-*-linux-*) echo linux arm64 ;;
    x86_64-pc-windows-*) echo windows amd64 ;;
    x86_64-apple-darwin) echo darwin amd64 ;;
    aarch64-apple-darwin) echo darwin arm64 ;;
    *) die "no archive for $1" ;;
  esac
}

# The C compiler that a target needs, which also links.
compiler() {
  case $1 in
    x86_64-unknown-linux-musl) echo musl-gcc ;;
    aarch64-unknown-linux-musl) echo aarch64-linux-gnu-gcc ;;
    x86_64-pc-windows-gnu) echo x86_64-w64-mingw32-gcc ;;
    *) echo cc ;;
  esac
}

# Why a target cannot be built here; nothing if it can.
missing() {
  have "$(compiler "$1")" || { echo "$(compiler "$1") is missing"; return; }
  echo '#include <stdint.h>' | "$(compiler "$1")" -E -x c - > /dev/null 2>&1 || { echo "$(compiler "$1") lacks the headers of C"; return; }
  [ -d "$(rustc --print sysroot)/lib/rustlib/$1" ] || echo "rustup target add $1"
}

build() {
  local target=$1 upper cc home crates flags
  upper=$(echo "$target" | tr 'a-z-' 'A-Z_')
  cc=$(compiler "$target")
  home=${CARGO_HOME:-$HOME/.cargo}
  # Paths of this machine would be in panics and in the code of C.
  flags="--remap-path-prefix=$PWD=. --remap-path-prefix=$(rustc --print sysroot)=rust"
  cargo fetch --locked
  for crates in "$home"/registry/src/*/; do flags+=" --remap-path-prefix=${crates%/}=crates"; done
  case $target in
    # musl-gcc cannot link a static executable that is position independent: what it makes asks for a loader.
    x86_64-unknown-linux-musl) flags+=" -C relocation-model=static" ;;
    # The compiler makes binaries for glibc; Rust brings musl and its start files.
    aarch64-unknown-linux-musl) flags+=" -C link-self-contained=yes" ;;
    # Else the linker writes the time of the build.
    *-windows-gnu) flags+=" -C link-arg=-Wl,--no-insert-timestamp" ;;
  esac
  env "CC_${target//-/_}=$cc" "CFLAGS_${target//-/_}=-ffile-prefix-map=$PWD=. -ffile-prefix-map=$home=cargo" \
    "CARGO_TARGET_${upper}_LINKER=$cc" "CARGO_TARGET_${upper}_RUSTFLAGS=$flags" \
    cargo build --locked --profile "$profile" --target "$target" --bin "$binary"
}

pack() {
  local target=$1 built=$2 os arch root name=$binary owner
  read -r os arch < <(platform "$target")
  [ -n "$arch" ] || exit 1
  [ "$os" = windows ] && name=$binary.exe
  root=$(mktemp -d)
  install -m 755 "$built" "$root/$name"
  install -m 644 LICENSE "$root/LICENSE"
  touch -d "@$SOURCE_DATE_EPOCH" "$root/$name" "$root/LICENSE" 2> /dev/null \
    || TZ=UTC touch -t "$(date -u -r "$SOURCE_DATE_EPOCH" +%Y%m%d%H%M.%S)" "$root/$name" "$root/LICENSE"
  if tar --version | grep -q GNU; then owner=(--owner=0 --group=0); else owner=(--uid 0 --gid 0 --uname '' --gname ''); fi
  mkdir -p "$out"
  # macOS would add files with its own attributes.
  COPYFILE_DISABLE=1 tar -C "$root" --format=ustar --numeric-owner "${owner[@]}" -cf - "$name" LICENSE | gzip -n > "$out/$binary-$version-$os-$arch.tar.gz"
  rm -r "$root"
  echo "$out/$binary-$version-$os-$arch.tar.gz"
}

# Whether an archive is what its users expect: small, with the license, and a program that starts by itself and answers.
check() {
  local target=$1 archive=$2 root said name=$binary run=()
  root=$(mktemp -d)
  tar -C "$root" -xzf "$archive"
  [ "$profile" = dev ] || [ "$(wc -c < "$archive")" -le 10000000 ] || die "$archive: larger than 10 MB"
  cmp LICENSE "$root/LICENSE"
  case $target in
    *-musl)
      if readelf --program-headers --wide "$root/$name" | grep INTERP; then die "$archive: asks for a loader"; fi
      ;;
    *-windows-gnu)
      name=$binary.exe
      if x86_64-w64-mingw32-objdump -p "$root/$name" | grep 'DLL Name: lib'; then die "$archive: asks for a library of MinGW"; fi
      ;;
  esac
  case $(uname -s)-$(uname -m)/$target in
    Linux-x86_64/x86_64-*-linux-* | Linux-aarch64/aarch64-*-linux-*) run=(env) ;;
    Darwin-arm64/aarch64-apple-* | Darwin-x86_64/x86_64-apple-*) run=(env) ;;
    Linux-*/aarch64-*-linux-*) if have qemu-aarch64-static; then run=(qemu-aarch64-static); fi ;;
  esac
  if [ ${#run[@]} -gt 0 ]; then
    "${run[@]}" "$root/$name" version --client
    said=$("${run[@]}" "$root/$name" drain-preflight cp-1 -f examples/high-availability.yaml --complete)
    echo "${said%%$'\n'*}"
  else
    echo "not run here: $target" >&2
  fi
  rm -r "$root"
}

# Whether two clones of the last commit, in folders of other names, give equal archives.
reproduce() {
  local root clone
  root=$(mktemp -d)
  for clone in "$root/one" "$root/the/other"; do
    git clone --quiet . "$clone"
    (cd "$clone" && env -u CARGO_TARGET_DIR OUT=packed krew/package.sh "$@")
  done
  diff "$root/one/packed/checksums.txt" "$root/the/other/packed/checksums.txt" || die "not equal: see $root"
  echo "equal bytes:"
  cat "$root/one/packed/checksums.txt"
  rm -rf "$root"
}

manifest() {
  local archive os arch sum suffix entries=$out/.platforms
  : > "$entries"
  : > "$out/checksums.txt"
  for archive in "$out/$binary-$version"-*.tar.gz; do
    [ -e "$archive" ] || die "no archive of $version in $out"
    if have sha256sum; then sum=$(sha256sum < "$archive"); else sum=$(shasum -a 256 < "$archive"); fi
    sum=${sum%% *}
    archive=${archive##*/}
    arch=${archive%.tar.gz}
    os=${arch%-*}
    arch=${arch##*-}
    os=${os##*-}
    suffix=
    [ "$os" = windows ] && suffix=.exe
    echo "$sum  $archive" >> "$out/checksums.txt"
    # The template's entry, once for each archive.
    sed -n '/^    - selector:/,$p' krew/gpustack-ha.yaml \
      | sed "s|@OS@|$os|; s|@ARCH@|$arch|; s|@URI@|$uri/$archive|; s|@SHA256@|$sum|; s|@BIN@|$binary$suffix|" >> "$entries"
  done
  sed -e '/^#/d' -e "s|@VERSION@|$version|" -e '/^    - selector:/,$d' krew/gpustack-ha.yaml | cat - "$entries" > "$out/gpustack-ha.yaml"
  rm "$entries"
  echo "$out/gpustack-ha.yaml"
}

case ${1:-} in
  --pack)
    [ $# = 3 ] || die "--pack TARGET BINARY"
    pack "$2" "$3"
    ;;
  --manifest) ;;
  --reproduce)
    shift
    reproduce "$@"
    exit
    ;;
  -*) die "no such option: $1" ;;
  *)
    targets=("$@")
    if [ $# = 0 ]; then
      case $(uname -s) in
        Darwin) known=(aarch64-apple-darwin x86_64-apple-darwin) ;;
        *) known=(x86_64-unknown-linux-musl aarch64-unknown-linux-musl x86_64-pc-windows-gnu) ;;
      esac
      for target in "${known[@]}"; do
        why=$(missing "$target")
        if [ -z "$why" ]; then targets+=("$target"); else echo "left out: $target: $why" >&2; fi
      done
      [ ${#targets[@]} -gt 0 ] || die "nothing can be built here"
    fi
    directory=$profile
    [ "$profile" = dev ] && directory=debug
    for target in "${targets[@]}"; do
      build "$target"
      suffix=
      case $target in *-windows-*) suffix=.exe ;; esac
      archive=$(pack "$target" "${CARGO_TARGET_DIR:-target}/$target/$directory/$binary$suffix")
      check "$target" "$archive"
      echo "$archive"
    done
    ;;
esac
manifest
