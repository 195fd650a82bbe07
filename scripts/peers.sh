# Installs the real programs that the tests exchange data with. Source it, then: install_peers target/peers

langchain_py_version=1.7.2
langchain_js_version=1.2.13
mathjs_version=15.2.0

install_peers() {
    local peers=$1
    mkdir -p "$peers"
    install_langchain_py "$peers/langchain-py"
    install_langchain_js "$peers/langchain-js"
    install_mathjs "$peers/mathjs"
}

# The stamp is written last, so an installation that was cut short is begun again.
install_langchain_py() {
    local home=$1 stamp="$1/steadyhand-$langchain_py_version"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    python3 -m venv "$home" &&
        "$home/bin/python" -m pip install --quiet "langchain-core==$langchain_py_version" &&
        touch "$stamp"
}

install_langchain_js() {
    local home=$1 stamp="$1/steadyhand-$langchain_js_version"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    mkdir -p "$home" &&
        npm install --prefix "$home" --no-audit --no-fund --silent "@langchain/core@$langchain_js_version" &&
        touch "$stamp"
}

install_mathjs() {
    local home=$1 stamp="$1/steadyhand-$mathjs_version"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    mkdir -p "$home" &&
        npm install --prefix "$home" --no-audit --no-fund --silent "mathjs@$mathjs_version" &&
        touch "$stamp"
}
