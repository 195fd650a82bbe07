# The guard of a Steadyhand process: when its owner is gone, however it went, it kills what that had started.
# The owner tells it, line by line: "+ 7" before run 7 begins, "= 7 1234" when process 1234 is its leader,
# "- 7" when it is over. $1 is what the marks of all runs begin with; the runs there are already follow, as 7:1234.
trap '' HUP INT QUIT PIPE ALRM TERM USR1 USR2 TSTP TTIN TTOU
family=$1
shift
runs=" "
for run in "$@"; do runs="$runs$run "; done

forget() {
    case $runs in *" $1:"*) ;; *) return ;; esac
    after=${runs#*" $1:"}
    runs="${runs%%" $1:"*} ${after#* }"
}

while read -r what run leader; do
    case $what in
        +) runs="$runs$run: " ;;
        =) forget "$run"; runs="$runs$run:$leader " ;;
        -) forget "$run" ;;
    esac
done

# The owner is gone. Mostly it has left nothing.
[ "$runs" = " " ] && exit 0
exec </dev/null
leaders=" "
marks=
options=
for run in $runs; do
    marks="$marks $family${run%%:*}."
    options="$options -e $family${run%%:*}."
    [ "${run#*:}" ] && leaders="$leaders${run#*:} "
done

among() {
    case $2 in *" $1 "*) return 0 ;; esac
    return 1
}

# Everything in a file; the shell leaves NUL bytes out.
contents() {
    text=
    while IFS= read -r line || [ "$line" ]; do text="$text$line"; done <"$1"
}

# Whether a process carries the mark of a run that was not over.
is_marked() {
    among "$1" "$likely" || return 1
    contents "/proc/$1/environ"
    for mark in $marks; do
        case $text in *"$mark"*) return 0 ;; esac
    done
    return 1
}

# Who may be marked: grep is faster than the shell, where it can read what is no text.
guess() {
    likely=" "
    if grep -qF "STEADYHAND_GUARD=$family" "/proc/$$/environ"; then
        for file in $(grep -lF $options /proc/[0-9]*/environ); do
            file=${file#/proc/}
            likely="$likely${file%/environ} "
        done
        return
    fi
    for folder in /proc/[0-9]*; do likely="$likely${folder#/proc/} "; done
}

# Kills everyone.
sweep() {
    found=" "
    # They must not die before we have looked: that cuts the tie between a parent and a child that left the group.
    [ -d "/proc/$$" ] && for leader in $leaders; do kill -STOP "-$leader"; done
    [ -d "/proc/$$" ] && look
    for leader in $leaders; do kill -KILL "-$leader"; done
    for pid in $found; do kill -KILL "$pid"; done
}

# Who is still there of the groups, of those who carry a mark, and of all their descendants: $found.
look() {
    others=
    guess
    for folder in /proc/[0-9]*; do
        pid=${folder#/proc/}
        [ "$pid" = $$ ] && continue
        contents "$folder/stat"
        # State, parent, group, session; before them a name that may hold anything.
        set -- ${text##*") "}
        case ${1:-Z} in Z | X | x) continue ;; esac
        if among "$3" "$leaders" || among "$4" "$leaders" || is_marked "$pid"; then
            found="$found$pid "
        else
            others="$others$pid:$2 "
        fi
    done
    grown=yes
    while [ "$grown" ]; do
        grown=
        rest=
        for entry in $others; do
            if among "${entry#*:}" "$found"; then
                found="$found${entry%:*} "
                grown=yes
            else
                rest="$rest$entry "
            fi
        done
        others=$rest
    done
}

round=0
quiet=
while [ $round -lt 40 ]; do
    round=$((round + 1))
    sweep
    if [ "$found" = " " ]; then
        [ "$quiet" ] && exit 0
        quiet=yes
        # The numbers of the groups are free now. Once more for what was being started when the owner died.
        leaders=" "
        [ -d "/proc/$$" ] || exit 0
        sleep 1
    else
        quiet=
        sleep 0.1 || sleep 1
    fi
done
