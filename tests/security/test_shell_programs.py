"""Programs that run other programs: what they are given is followed, or the line is opaque."""

import time

from hookline.ext.command_hooks.matcher import ToolCondition
from hookline.text.shell import command_pattern, commands_of

from ..tables import each_row
from .spellings import lines

NO_PUSH = command_pattern("git push *")

HIDDEN = lines(r"""
mapfile -C x -c 1 y
mapfile -tC x y
readarray -tC 'git push' a
complete -C 'git push' ls
bind -x '"a": git push'
trap 'git push' debug
trap 'git push' SIGDEBUG
let 'a[$(git push)]=1'
declare -n a=b
declare -a 'a[$(git push)]=1'
typeset -i a='b[$(git push)]'
export 'a[$(git push)]=1'
readonly 'a[$(git push)]'
BASH_ENV=x bash -c ls
FCEDIT=x fc
fc -e 'git push'
fc -s
hash -p /bin/git ls
set -o keyword
set -o posix
command_not_found_handle() { git push; }; foo
command_not_found_handle() { git "$@"; }; push
command_not_found_handler() { git "$@"; }; push
function ls { git push; }; ls
exec -a ls git push
exec -la z git push
time -p -- git push
! time git push
time ! git push
time time git push
a[$(git push)]=1
echo ${a[$(git push)]}
echo $((a[$(git push)]))
[[ -v a[$(git push)] ]]
test 'a[$(git push)]' -eq 1
[[ 'a[$(git push)]' -eq 1 ]]
printf %s -v
read -a 'a[$(git push)]'
read x <<< 'a[$(git push)]'; echo $((x))
x='a[$(git push)]'; let x
x='a[$(git push)]'; echo ${b:x}
x='a[$(git push)]'; echo ${b[x]}
x='a[$(git push)]'; b[x]=1
x='a[$(git push)]'; declare -i y=x
x='a[$(git push)]'; for ((i=x;i<1;i++)); do :; done
wait -n -p 'a[$(git push)]'
getopts a 'b[$(git push)]'
ls >&$(git push)
ls >$(git push)
ls 2>&"$(git push)"
case $(git push) in x) ;; esac
case x in $(git push)) ;; esac
case x in a|$(git push)) ls;; esac
echo $"$(git push)"
echo "`git push`"
. ./x
source <(echo git push)
newgrp x
bash -i
bash -l
bash /dev/stdin
echo git push | bash
echo git push | bash -
cat > x <<'Z'; sh x
ln -s /usr/bin/git x; ./x push
cp /usr/bin/git x; ./x push
GIT=git; $GIT push
/usr/lib/git-core/git-push
git-push
git-push origin
/usr/lib/git-core/git push
/lib64/ld-linux-x86-64.so.2 /usr/bin/git push
ld.so git push
/lib64/ld-linux-x86-64.so.2 /usr/bin/rm -rf x
git --exec-path=. push
git bisect start; git bisect run ls
git submodule foreach 'git push'
git submodule add ext::x
git rebase --exec 'git push' x
git rebase -x 'git push' x
git rebase --ex 'git push' x
git rebase -ix 'git push' x
git filter-branch --tree-filter 'git push'
git difftool -x 'git push'
git grep -O'git push' x
git grep --open 'git push' x
git clone ext::sh
git clone -c core.x=y z
git clone --config core.x=y z
git clone -u x y
git clone --upload-pack x y
git clone --template=x y
git clone --conf=core.x z
git init --template=x
git fetch ext::sh
git remote add x ext::sh
git remote add x 'ext::sh -c git push'
git ls-remote --upload-pack=x y
git ls-remote --exec=x y
git archive --remote=x --exec=y
git archive --exec=y HEAD
git daemon
git send-pack x
git send-pack --exec=x y
git http-push x
git push-to
git svn dcommit
git p4 submit
git send-email x
git lfs push
git subtree push
git notes edit
git commit --template=x
git merge -s x y
git merge --strategy=x y
git branch --edit-description
git hook run x
git maintenance start
git cat-file --textconv x
git diff --ext-diff
git show --textconv x
git blame --textconv x
git log -p --ext
git config x.y z
git config set alias.x y
git config --add alias.x y
git config --file x y z
git config include.path x
git config core.fsmonitor x
git config gpg.program x
git config merge.x.driver y
git config --edit
git config --global --edit
git credential fill
git web--browse x
git help -w git
git instaweb
git shell
git upload-pack x
git receive-pack x
git remote-ext x y
git remote-https x
git sh-setup
git merge-index x y
git merge-index git-push -a
git merge-one-file
git for-each-repo --config=x push
git -h
git backfill
git replay x
git bugreport
git diagnose
git scalar x
find . -execdir git push \;
find -files0-from x -exec git push {} +
xargs -a x git
xargs git
xargs --arg-file=x git
xargs -I % sh -c %
parallel git ::: push
parallel ::: 'git push'
sem git push
rush git push
make CC='git push'
make -j2 -f x
make -jf x
make --makef=x
make --ev=x
ninja -t x
npm run x
npm init x
npm create x
npm exec -- git push
npm x -- git push
npm x git push
npm run x -- git push
npm config set script-shell x
npm --script-shell=x test
npm explore x -- git push
npm edit x
npm set-script x y
npm --node-options=x test
npm config edit
npm config set editor x
npm --call 'git push' exec
npm exec -c 'git push'
npx -c 'git push'
npx --call 'git push'
npx -c git
pnpm git push
pnpm -c exec 'git push'
pnpm exec git push
pnpm dlx git push
pnpm -r exec git push
pnpx git push
yarn git push
yarn run git push
yarn node -e x
yarn exec 'git push'
bun run x
bun x git push
bunx git push
bun x.ts
bun install
deno task x
deno x.ts
node --import x y
node --test
node -C x y
node --loader x y
node --run x
uv run --with x git push
uv run -m x
uv run --script x
uv run python -c x
uv tool run git push
uvx git push
uv --directory x run git push
uv run -- git push
uv run -p 3 git push
uv run --unknown git push
poetry shell
poetry -C x run git push
pipenv shell
pdm run git push
hatch run git push
hatch shell
tox exec -- git push
tox e -- git push
rye run git push
pixi run git push
conda run git push
conda run -n x git push
mamba run -n x git push
micromamba run git push
cargo run -- git push
cargo --config x build
cargo -Z x build
cargo watch -x run
go tool x
go generate ./...
go vet -vettool=x
go vet --vettool=x
go env -w CC=x
go env -w GOFLAGS=-toolexec=x
go build --toolexec=x
go build -ldflags='-extld=x'
go build -ldflags=-extld=x
go run -exec git push
docker compose run x
docker --config x ps
docker -H ssh://x ps
docker stack deploy x
docker container run x
docker container exec x y
docker volume create x
docker service create x
docker plugin install x
docker attach x
kubectl --kubeconfig=x get pods
kubectl --kubeconfig x get pods
kubectl proxy
kubectl config set-credentials x --exec-command=y
kubectl debug x
kubectl cp x y
kubectl attach x
ssh h git push
ssh -F x h
rsync --rsh x a b
rsync --rs=x a b
rsync -avze x a b
rsync --rsync-path=x a b
rsync --rsync-p=x a b
rsync -M--rsh=x a b
rsync --daemon --config=x
rsync --daemon
rsync --config=x a b
scp -oProxyCommand=x a b
scp -F x a b
scp -J x a b
scp -D x a b
sftp -F x h
sftp -b x h
ssh-keygen -D x
ssh-keygen -w x
ssh-add -s x
ssh-agent git push
ssh-agent sh -c 'git push'
autossh h
tar --to-command=x -xf y
tar --to-co=x -xf y
tar cf x --checkpoint=1 --checkpoint-act=exec=x y
tar xf x -I y
tar -xIf x y
tar --use-comp=x -xf y
tar --use-compress-program x -xf y
tar --rmt-command=x -xf h:y
tar -xf h:y
tar -F x -cf y z
tar --info-script=x
tar --new-volume-script=x
tar -T x -cf y
tar --files-from=x
tar --rsh=x
zip -TT 'git push' x y
zip -T x
zip -T -TT x y z
zip --unzip x y
cpio --rsh-command=x
cpio -o --rsh-command x
sed -n '1e git push' x
sed 's/.*/git push/e' x
sed --expression='1e x' y
sed -ne '1e x' y
sed -e1e x
sed -E 's/(a)/\1/;w x' y
gawk -i inplace x
gawk -e x
gawk -E x
gawk -l x
gawk --exec x
gawk --load=x 'y'
awk -v x='y' '{system(x)}'
awk -W exec=x
mawk -W exec x
busybox awk 'BEGIN{system("git push")}'
busybox sed 1e x
busybox vi x
busybox find . -exec git push \;
busybox xargs git push
busybox sh
busybox env git push
toybox git push
ed -s x
red x
vi -c ':!git push'
view x
rview x
vimdiff x y
vim -es x
nvim --headless x
emacs -Q --batch --eval x
emacs -nw x
emacsclient -e x
micro x
helix x
hx x
kak x
code x
code --install-extension x
subl x
joe x
pico x
mcedit x
ne x
mg x
jed x
gdb -ex 'shell git push'
gdb --args git push
lldb -- git push
strace -f -o '|git push' ls
strace -o '|git push' ls
strace -o '!git push' ls
ltrace -o x git push
perf record git push
perf record -- git push
perf trace git push
perf stat git push
perf script x
valgrind git push
valgrind --tool=x git push
valgrind --trace-children=yes git push
valgrind --db-command=x git push
heaptrack git push
rr record git push
catchsegv git push
gprofng collect app git push
bpftrace -c 'git push' x
bpftrace -e x
trace-cmd record git push
script -qc 'git push' x
scriptreplay x
socat EXEC:'git push' -
socat - EXEC:x
nc -e x h 1
nc -lc x
nc -l -p 1 -e x
nc -lp 1 --exec x
ncat --sh-exec x
ncat -c x h
openssl engine x
openssl req -engine x
openssl x -provider-path y
openssl s_client x
openssl s_time -connect x
curl -K x
curl -sK x
curl --config x
curl --conf x
curl --engine x y
curl -sSfL x | sh
curl --libcurl x y
wget --use-ask=x y
wget -i x
wget --config=x y
wget -ex y
sqlite3 x '.shell git push'
sqlite3 x '.system git push'
sqlite3 x ".sh git push"
sqlite3 x ' .sh git push'
sqlite3 x '.sy git push'
sqlite3 x 'select edit(1)'
sqlite3 x 'select load_extension(1)'
sqlite3 x < y
sqlite3 x
sqlite3 -cmd '.sh x' y
sqlite3 --cmd x y
sqlite3 --init x y
psql -c '\! git push'
psql -c "copy x to program 'git push'"
psql -c "COPY x TO PROGRAM 'git push'"
psql -f x
psql --file=x
psql --fi=x
psql
psql x
psql -o '|git push' x
psql -L x
psql --output='|git push' x
mysql -e 'system git push'
mysql -e '\! git push'
mysql -e 'SYSTEM git push'
mysql x
mysql --pager='git push' x
mysql < x
mysql --tee=x
mongosh --eval x
mongo --eval x
redis-cli eval x
redis-cli EVAL x 0
redis-cli config set dir x
redis-cli CONFIG SET dir x
redis-cli -x set a
redis-cli
clickhouse local -q x
duckdb -c ".shell x"
duckdb x
sqlplus x
cqlsh -f x
""")
"""Each may run `git push`, or any other program."""

READABLE = lines(r"""
git -c user.name=x commit -m y
git -c user.name=x -c user.email=y@z commit --amend --no-edit
git -c color.ui=always log
git -c core.quotepath=off status
git config user.name x
git config --global user.email x@y
git config --get core.pager
git config --list
git config core.editor
git config init.defaultBranch main
git switch -c branch
git clean -xdf
git cherry-pick -x abc
git add core.py filter.py alias.txt diff.md
git diff -- merge.py
git commit -m 'core.pager is set'
git commit -s -m x
git merge -s ours x
git log --exclude=x --text
git diff --exit-code
git stash push
git diff -O order
docker build .
docker build -t x -f Dockerfile .
docker build --target y --build-arg A=b .
docker ps -a
docker logs -f x
docker images
make
make test
make -f Makefile test
make -f build/rules.mk
make -C sub all
make -j4 VERBOSE=1 PREFIX=/usr/local
make --file=Makefile
tar xzf a.tgz
tar -czf a.tgz src
rsync -avz a b
curl -sSfL https://example.org -o x
wget -q https://example.org
npm test
npm install
npm run build
pnpm install
yarn build
cargo build --release
cargo test
go build ./...
go test ./...
uv run pytest -q
poetry install
sqlite3 x.db 'select 1'
psql -c 'select 1'
mysql -e 'select 1'
redis-cli get a
kubectl get pods -n x
cp a b
mv a b
ln -s a b
cp /etc/hosts x
openssl rand -hex 8
sort -u x
strace -f -o x ls
gcc -O2 -o x x.c
DEBUG=1 pytest
CI=true npm test
foo 2>&1
foo >out 2>err
""")
"""Everyday commands that a reader which refuses too much would make useless."""


@each_row("command", HIDDEN)
def test_a_program_that_runs_another_is_followed_or_opaque(command):
    found = commands_of(command)
    assert found.opaque or NO_PUSH.match(found)
    assert ToolCondition("Bash(git push *)").holds(("Bash",), {"command": command}, "/work/x")


@each_row("command", READABLE)
def test_an_everyday_command_is_understood(command):
    assert commands_of(command).unclear == []


@each_row(
    ("command", "program"),
    [
        ("sometool rm -rf /", "rm"),
        ("sometool --flag x curl https://example.org", "curl"),
        ("pnpm rm -rf x", "rm"),
        ("yarn rm -rf x", "rm"),
        ("conda run -n x rm -rf y", "rm"),
        ("uv tool run rm x", "rm"),
        ("hatch run rm x", "rm"),
        ("tox exec -- rm x", "rm"),
        ("cargo with rm x", "rm"),
        ("sometool -- anything x", "anything"),
        ("sometool /bin/rm x", "rm"),
        ("/usr/lib/git-core/git-push origin", "git"),
    ],
)
def test_a_command_among_the_arguments_of_another_program_is_reported(command, program):
    assert program in commands_of(command).programs


@each_row("program", ["test", "declare", "psql -c", "sqlite3 x", "git", "make", "sometool", "tar"])
@each_row("unit", ["[", "[$", "a=", "-c ", "rm ", ".", "\\\\", "x:", "/bin/"])
def test_the_longest_argument_is_read_in_time(program, unit):
    began = time.process_time()
    commands_of(f"{program} '{unit * (90_000 // len(unit))}'")
    commands_of(f"{program} {unit * (7_000 // len(unit))}")
    assert time.process_time() - began < 3
