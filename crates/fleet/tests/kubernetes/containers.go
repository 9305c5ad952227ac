package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setup gives a container its volumes, of which each argument before `--` names one as SOURCE:PATH,
// and becomes its command.
const setup = `set -e; mount -t tmpfs -o mode=755 none /mnt; mkdir /mnt/state
while [ "$1" != -- ]; do mkdir -p "${1#*:}"; mount --bind "${1%%:*}" "${1#*:}"; shift; done
shift; exec "$@"`

// Container is a pod's only one.
type Container struct {
	command *exec.Cmd
	env     []string
	begun   meta.Time
	ended   chan struct{}
	end     sync.Once
}

// Pods are those that were started here.
type Pods struct {
	lock   sync.Mutex
	all    map[string]*Container
	names  map[string]string
	folder string
}

func newPods(folder string) *Pods {
	return &Pods{all: map[string]*Container{}, names: map[string]string{}, folder: folder}
}

func (pods *Pods) find(uid string) *Container {
	pods.lock.Lock()
	defer pods.lock.Unlock()
	return pods.all[uid]
}

// named finds a container by namespace and name of its pod.
func (pods *Pods) named(pod string) *Container {
	pods.lock.Lock()
	defer pods.lock.Unlock()
	return pods.all[pods.names[pod]]
}

func (pods *Pods) start(pod *core.Pod) (*Container, error) {
	volumes, err := pods.volumes(pod)
	if err != nil {
		return nil, err
	}
	spec := pod.Spec.Containers[0]
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	// What would be of a machine of the node's own.
	env = append(env, "HOSTNAME="+pod.Name, "KVMETER_STATE_DIR=/mnt/state")
	for _, variable := range spec.Env {
		env = append(env, variable.Name+"="+variable.Value)
	}
	words := []string{"--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "sh", "-c", setup, "sh"}
	words = append(append(words, volumes...), "--")
	words = append(append(words, spec.Command...), spec.Args...)
	command := exec.Command("unshare", words...)
	command.Env, command.Dir = env, "/"
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return nil, err
	}
	container := &Container{command: command, env: env, begun: meta.Now(), ended: make(chan struct{})}
	go func() {
		_ = command.Wait()
		close(container.ended)
	}()
	pods.lock.Lock()
	defer pods.lock.Unlock()
	pods.all[string(pod.UID)] = container
	pods.names[pod.Namespace+"/"+pod.Name] = string(pod.UID)
	return container, nil
}

// volumes makes what the container mounts.
func (pods *Pods) volumes(pod *core.Pod) ([]string, error) {
	var all []string
	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		if !strings.HasPrefix(mount.MountPath, "/mnt/") {
			return nil, fmt.Errorf("%s: is not below /mnt", mount.MountPath)
		}
		for _, volume := range pod.Spec.Volumes {
			if volume.Name != mount.Name {
				continue
			}
			source := filepath.Join(pods.folder, string(pod.UID), volume.Name)
			if volume.HostPath != nil {
				source = volume.HostPath.Path
			} else if err := os.MkdirAll(source, 0o755); err != nil {
				return nil, err
			}
			all = append(all, source+":"+mount.MountPath)
		}
	}
	return all, nil
}

// endAllBut kills what the API server has no pod of, and removes its volumes.
func (pods *Pods) endAllBut(known map[string]bool) {
	pods.lock.Lock()
	defer pods.lock.Unlock()
	for uid, container := range pods.all {
		if known[uid] {
			continue
		}
		container.kill()
		<-container.ended
		_ = os.RemoveAll(filepath.Join(pods.folder, uid))
		delete(pods.all, uid)
	}
}

func (container *Container) runs() bool {
	select {
	case <-container.ended:
		return false
	default:
		return true
	}
}

func (container *Container) code() int32 {
	state := container.command.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int32(status.Signal())
	}
	return int32(state.ExitCode())
}

// first is the process that the container's namespace begins with.
func (container *Container) first() (int, error) {
	id := container.command.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", id, id))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(children)))
}

// terminate sends SIGTERM to the first process once, and SIGKILL after the grace period.
func (container *Container) terminate(grace time.Duration) {
	container.end.Do(func() {
		if first, err := container.first(); err == nil {
			_ = syscall.Kill(first, syscall.SIGTERM)
		}
		time.AfterFunc(grace, container.kill)
	})
}

// kill ends the namespace with all that runs in it.
func (container *Container) kill() {
	if container.runs() {
		_ = container.command.Process.Kill()
	}
}
