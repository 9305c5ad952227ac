package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
	protocols "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/cert"
	streaming "k8s.io/kubelet/pkg/cri/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// serve answers `exec` on a port of the kernel's choice.
func serve(pods *Pods) (int32, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return 0, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return 0, err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		return 0, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		options, err := streaming.NewOptions(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		pod := r.PathValue("namespace") + "/" + r.PathValue("pod")
		streaming.ServeExec(w, r, pods, pod, "", r.PathValue("container"), r.URL.Query()["command"],
			options, 4*time.Hour, protocols.DefaultStreamCreationTimeout,
			protocols.SupportedStreamingProtocols)
	})
	go func() { log.Fatal(http.Serve(listener, mux)) }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return 0, err
	}
	number, err := strconv.Atoi(port)
	return int32(number), err
}

// ExecInContainer runs a command in the namespaces of a pod's container. Like a runtime's, it
// outlives its connection, whose end is the end of its standard input.
func (pods *Pods) ExecInContainer(
	_ context.Context, pod string, _ types.UID, _ string, words []string,
	in io.Reader, out, errors io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize,
	_ time.Duration,
) error {
	container := pods.named(pod)
	if container == nil || !container.runs() {
		return fmt.Errorf("container of %s is not running", pod)
	}
	first, err := container.first()
	if err != nil {
		return err
	}
	args := append([]string{"--target", strconv.Itoa(first), "--pid", "--mount", "--wd=/", "--"}, words...)
	command := exec.Command("nsenter", args...)
	command.Env = container.env
	command.Stdout, command.Stderr = out, errors
	if in != nil {
		stdin, err := command.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(stdin, in)
			_ = stdin.Close()
		}()
	}
	err = command.Run()
	failed, ok := err.(*exec.ExitError)
	if !ok {
		return err
	}
	code := failed.ExitCode()
	if status, ok := failed.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	return utilexec.CodeExitError{Err: fmt.Errorf("%s: exit code %d", strings.Join(words[:1], " "), code), Code: code}
}
