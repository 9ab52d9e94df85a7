# bash completion for hurray; installed as .../bash-completion/completions/hurray

# Completes a tensor's name. Names come from files and are never expanded by the shell (compgen -W would).
_hurray_names() {
    local name
    COMPREPLY=()
    while IFS= read -r name; do
        [[ $name == "$cur"* ]] && COMPREPLY+=("$(printf '%q' "$name")")
    done < <(hurray inspect --quiet -- "$1" 2>/dev/null | awk 'NR > 1 && NF > 3 { print $1 }')
}

_hurray() {
    local cur prev word command='' file='' after='' i
    cur=${COMP_WORDS[COMP_CWORD]}
    prev=${COMP_WORDS[COMP_CWORD - 1]}
    local -a positional=()
    COMPREPLY=()

    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case $word in
        --) after=1 ;;
        --hex | --device | --io | --direct | --huge-pages | --pinned-mb | --pinned | --memory-mb | --threads | --queue-depth | --chunk | --trace | \
            --picture | --name-prefix | --to | --select | --rename | --align | --quantization | --shard-size | --buffer | --as)
            [[ -n $after ]] || ((i++)) ;;
        -*) ;;
        *) if [[ -z $command ]]; then command=$word; else positional+=("$word"); fi ;;
        esac
    done

    if [[ -z $command ]]; then
        mapfile -t COMPREPLY < <(compgen -W 'inspect verify load convert cat stream devices help --help --version' -- "$cur")
        return
    fi

    local values=none
    [[ -n $after ]] || case $prev in
    --device) values='cpu auto cuda cuda:0' ;;
    --io) values='auto uring threads mmap' ;;
    --direct | --huge-pages | --pinned) values='auto on off' ;;
    --to) values='hrry safetensors' ;;
    --quantization) values='native' ;;
    --as) values='float32' ;;
    --align) values='4K 16K 64K 2M' ;;
    --chunk) values='1M 4M 16M' ;;
    --trace | --picture) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    --hex | --select) [[ ${#positional[@]} -eq 0 ]] || _hurray_names "${positional[0]}"; return ;;
    --pinned-mb | --memory-mb | --threads | --queue-depth | --name-prefix | --rename | --shard-size | --buffer) return ;;
    esac
    if [[ $values != none ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur")
        return
    fi

    if [[ $cur == -* && -z $after ]]; then
        local options='--quiet --help'
        case $command in
        inspect) options+=' --json --hex' ;;
        verify) options+=' --json --data' ;;
        load) options+=' --json --device --io --direct --huge-pages --pinned-mb --pinned --memory-mb --threads --queue-depth --chunk --verify --trace --picture --name-prefix' ;;
        convert) options+=' --to --select --rename --align --sorted --no-checksums --quantization --shard-size --dense --kv-as-text --name-prefix' ;;
        cat) options+=' --buffer --dense --as --text --name-prefix' ;;
        stream) options+=' --name-prefix --gzip' ;;
        devices) options+=' --json --free' ;;
        esac
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
        return
    fi

    local count=${#positional[@]}
    case $command in
    help) mapfile -t COMPREPLY < <(compgen -W 'inspect verify load convert cat stream devices' -- "$cur"); return ;;
    devices) return ;;
    stream)
        if ((count == 0)); then
            mapfile -t COMPREPLY < <(compgen -W 'read write' -- "$cur")
            return
        fi
        [[ ${positional[0]} == write ]] && ((count > 1)) && file=${positional[1]} ;;
    load) ((count > 0)) && file=${positional[0]} ;;
    cat) ((count == 1)) && file=${positional[0]}; ((count > 1)) && return ;;
    esac
    if [[ -n $file ]]; then
        _hurray_names "$file"
    else
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    fi
}

complete -F _hurray hurray
