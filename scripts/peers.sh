# Installs the real programs that the tests exchange data with. Source it, then: install_peers target/peers

langchain_py_version=1.7.2
langchain_js_version=1.2.13
langchain_ollama_version=1.1.0
mistral_common_version=1.13.0

install_peers() {
    local peers=$1
    mkdir -p "$peers"
    install_langchain_py "$peers/langchain-py"
    install_langchain_js "$peers/langchain-js"
    install_from_pypi "$peers/langchain-ollama" langchain-ollama "$langchain_ollama_version"
    install_from_pypi "$peers/mistral-common" mistral-common "$mistral_common_version"
}

# One Python package in a home of its own.
install_from_pypi() {
    local home=$1 package=$2 version=$3 stamp="$1/steadyhand-$3"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    python3 -m venv "$home" &&
        "$home/bin/python" -m pip install --quiet "$package==$version" &&
        touch "$stamp"
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
