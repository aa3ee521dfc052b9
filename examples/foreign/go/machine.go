package main

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed machine.sh
var machineScript string

// machine is an OpenSSH server with its own root file system, mounts and processes. Its disk outlives its processes.
type machine struct {
	disk    string
	address string
	port    int
	vcpus   int
	memory  float64
}

func (m machine) path(parts ...string) string {
	return filepath.Join(append([]string{m.disk}, parts...)...)
}

// install writes a new disk: empty home folders, accounts, a host key and the keys of the user.
func (m machine) install(user string, keys []string, o *offer) error {
	for _, folder := range []string{"work", "root", "upper/etc/ssh", "upper/usr/local/bin"} {
		if err := os.MkdirAll(m.path(folder), 0o755); err != nil {
			return err
		}
	}
	for folder, mode := range map[string]os.FileMode{"root": 0o700, "home": 0o755, "work": 0o755, "mnt": 0o755, "tmp": 0o777 | os.ModeSticky} {
		folder = m.path("upper", folder)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(folder, mode); err != nil {
			return err
		}
		if err := syscall.Setxattr(folder, "trusted.overlay.opaque", []byte("y"), 0); err != nil {
			return err
		}
	}
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return err
	}
	shadow := "root:*:19000::::::\nsshd:*:19000::::::\ncloud:*:19000::::::\n"
	account := "cloud:x:2000:2000::/home/cloud:/bin/bash\n"
	files := map[string]string{
		"etc/passwd":          string(passwd) + account,
		"etc/shadow":          shadow,
		"etc/hostname":        filepath.Base(m.disk) + "\n",
		"usr/local/bin/nproc": fmt.Sprintf("#!/bin/sh\necho %d\n", o.VCPUs),
	}
	if o.GPUCount > 0 {
		files["usr/local/bin/nvidia-smi"] = fmt.Sprintf(
			"#!/bin/sh\nfor i in $(seq %d); do echo \"NVIDIA %s, %.0f MiB\"; done\n", o.GPUCount, o.GPUType, o.GPUMemoryGB*1024)
	}
	for name, text := range files {
		mode := os.FileMode(0o644)
		if strings.Contains(name, "/bin/") {
			mode = 0o755
		}
		if err := os.WriteFile(m.path("upper", name), []byte(text), mode); err != nil {
			return err
		}
	}
	if err := m.newHostKey(); err != nil {
		return err
	}
	return m.authorize(user, keys)
}

func (m machine) newHostKey() error {
	file := m.path("upper/etc/ssh/ssh_host_ed25519_key")
	os.Remove(file)
	return exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", file).Run()
}

// authorize replaces the keys that the user can log in with.
func (m machine) authorize(user string, keys []string) error {
	home, owner := m.path("upper/root"), 0
	if user != "root" {
		home, owner = m.path("upper/home", user), 2000
	}
	folder := filepath.Join(home, ".ssh")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	file := filepath.Join(folder, "authorized_keys")
	if err := os.WriteFile(file, []byte(strings.Join(keys, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	for _, path := range []string{home, folder, file} {
		if err := os.Chown(path, owner, owner); err != nil {
			return err
		}
	}
	return nil
}

// start runs the machine, and returns when its SSH server greets.
func (m machine) start() error {
	if m.pid() == 0 {
		logFile, err := os.Create(m.path("log"))
		if err != nil {
			return err
		}
		defer logFile.Close()
		cmd := exec.Command("/bin/sh", "-c", machineScript, "machine", m.disk, m.address,
			strconv.Itoa(m.port), strconv.Itoa(m.vcpus), fmt.Sprintf("%.0f", m.memory))
		cmd.Stdout, cmd.Stderr = logFile, logFile
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS, Setsid: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		go cmd.Wait()
		if err := os.WriteFile(m.path("pid"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
			return err
		}
	}
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if m.greets() {
			return nil
		}
		if m.pid() == 0 {
			break
		}
	}
	text, _ := os.ReadFile(m.path("log"))
	return errors.New("the machine did not boot: " + string(text))
}

func (m machine) greets() bool {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(m.address, strconv.Itoa(m.port)), time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(2 * time.Second))
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return strings.HasPrefix(line, "SSH-")
}

// pid is the first process of the machine, or 0 if it does not run.
func (m machine) pid() int {
	text, err := os.ReadFile(m.path("pid"))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(string(text))
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if pid == 0 || len(stat) == 0 || strings.Contains(string(stat), ") Z ") {
		return 0
	}
	return pid
}

// kill ends every process of the machine, and with them its mounts.
func (m machine) kill() {
	syscall.Sync()
	for pid := m.pid(); pid != 0; pid = m.pid() {
		syscall.Kill(pid, syscall.SIGKILL)
		var status syscall.WaitStatus
		syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
		time.Sleep(10 * time.Millisecond)
	}
	os.Remove(m.path("pid"))
}

// run executes a shell command on the machine, as root.
func (m machine) run(command, stdin string) error {
	cmd := exec.Command("nsenter", "-t", strconv.Itoa(m.pid()), "-m", "-p", "--",
		"chroot", m.path("root"), "/bin/sh", "-c", command)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "DEBIAN_FRONTEND=noninteractive"}
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %s", err, out)
	}
	return nil
}

// mount shows the folder of a volume on the machine, at /mnt/ID.
func (m machine) mount(folder, id string) error {
	target := m.path("root/mnt", id)
	script := `mkdir -p "$2" && { mountpoint -q "$2" || mount --bind "$1" "$2"; }`
	return m.host(script, folder, target)
}

func (m machine) unmount(id string) error {
	return m.host(`! mountpoint -q "$1" || umount -l "$1"`, m.path("root/mnt", id))
}

// host executes a script with the mounts of the machine, but with the files of this host.
func (m machine) host(script string, arguments ...string) error {
	pid := m.pid()
	if pid == 0 {
		return errors.New("the machine does not run")
	}
	all := append([]string{"-t", strconv.Itoa(pid), "-m", "--", "/bin/sh", "-c", script, "host"}, arguments...)
	if out, err := exec.Command("nsenter", all...).CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %s", err, out)
	}
	return nil
}

type cloudInit struct {
	Runcmd         []string    `json:"runcmd"`
	Packages       []string    `json:"packages"`
	PackageUpdate  bool        `json:"package_update"`
	PackageUpgrade bool        `json:"package_upgrade"`
	WriteFiles     []cloudFile `json:"write_files"`
}

type cloudFile struct {
	Path        string  `json:"path"`
	Content     *string `json:"content"`
	Owner       string  `json:"owner"`
	Permissions string  `json:"permissions"`
}

// firstBoot does what cloud-init does: files, packages, then the commands as one script. It logs what fails, and goes on.
func (m machine) firstBoot(c *cloudInit) {
	attempt := func(what, command, stdin string) {
		if err := m.run(command, stdin); err != nil {
			fmt.Fprintf(os.Stderr, "cloud-init of %s: %s: %v\n", m.disk, what, err)
		}
	}
	for _, f := range c.WriteFiles {
		content := *f.Content
		if fault("cloud-init-4k") && len(content) > 4096 {
			content = content[:4096]
		}
		path := quote(f.Path)
		attempt(f.Path, "mkdir -p \"$(dirname "+path+")\" && cat > "+path, content)
		if f.Permissions != "" && !fault("permissions-ignored") {
			attempt(f.Path, "chmod "+quote(f.Permissions)+" "+path, "")
		}
		if f.Owner != "" {
			attempt(f.Path, "chown "+quote(f.Owner)+" "+path, "")
		}
	}
	if c.PackageUpdate || c.PackageUpgrade {
		attempt("update", "apt-get update -q", "")
	}
	if c.PackageUpgrade {
		attempt("upgrade", "apt-get upgrade -yq", "")
	}
	for _, name := range c.Packages {
		attempt(name, "apt-get install -yq -- "+quote(name), "")
	}
	m.runcmd(c)
}

func (m machine) runcmd(c *cloudInit) {
	script := strings.Join(c.Runcmd, "\n")
	if fault("runcmd-stops") {
		script = "set -e\n" + script
	}
	if err := m.run("cat > /var/tmp/runcmd.sh && sh /var/tmp/runcmd.sh", script+"\n"); err != nil {
		fmt.Fprintf(os.Stderr, "runcmd of %s: %v\n", m.disk, err)
	}
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
