# Programs from crates.io that only some scripts need, each at a version that was tried: `tool mdbook 0.5.4` puts it under target/tools.
# Built without optimisation: each runs for seconds, and would be compiled for minutes.
tool() {
    local name=$1 version=$2
    PATH="$PWD/target/tools/bin:$PATH"
    [ "$("$name" --version 2>/dev/null | grep -o '[0-9][0-9.]*' | head -1)" = "$version" ] && return
    CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=target/tools/build \
        cargo install --debug --locked --root target/tools --version "$version" "${@:3}" "$name"
}
