// A node of a test's own cluster: registers itself, and runs the containers of the pods that are
// bound to it as processes of this machine. Each has process and mount namespaces of its own, and
// volumes at paths below /mnt. Commands are connected to them by the kubelet's own library.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
)

const (
	// Between looks at the pods.
	look = 200 * time.Millisecond
	// Between renewals of the node's lease.
	renewal    = 5 * time.Second
	leaseFor   = int32(15)
	leaseSpace = "kube-node-lease"
)

var (
	kubeconfig = flag.String("kubeconfig", "", "how the API server is reached")
	name       = flag.String("name", "", "the node's name")
	labels     = flag.String("labels", "", "labels as KEY=VALUE,...")
	cpus       = flag.String("cpus", "2", "CPUs to schedule")
	folder     = flag.String("folder", "", "volumes of the pods")
)

// Node is what this process stands for.
type Node struct {
	client *kubernetes.Clientset
	pods   *Pods
	// Where the API server reaches it.
	port int32
}

func main() {
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	config.QPS, config.Burst = 100, 200
	node := Node{client: kubernetes.NewForConfigOrDie(config), pods: newPods(*folder)}
	node.port, err = serve(node.pods)
	check(err)
	check(os.MkdirAll(*folder, 0o755))
	node.register()
	go node.renew()
	for {
		if err := node.reconcile(); err != nil {
			log.Print(err)
		}
		time.Sleep(look)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func (node *Node) register() {
	all := map[string]string{"kubernetes.io/hostname": *name, "kubernetes.io/os": "linux"}
	for _, label := range strings.Split(*labels, ",") {
		if key, value, found := strings.Cut(label, "="); found {
			all[key] = value
		}
	}
	object := &core.Node{ObjectMeta: meta.ObjectMeta{Name: *name, Labels: all}}
	nodes := node.client.CoreV1().Nodes()
	_, err := nodes.Create(context.TODO(), object, meta.CreateOptions{})
	check(err)
	check(node.beReady())
}

// beReady writes that the node can run pods, where the cluster does not have it so: a node that was
// not heard of for long is taken for unreachable until it says otherwise.
func (node *Node) beReady() error {
	nodes := node.client.CoreV1().Nodes()
	room := core.ResourceList{
		core.ResourceCPU:              resource.MustParse(*cpus),
		core.ResourceMemory:           resource.MustParse("8Gi"),
		core.ResourcePods:             resource.MustParse("20"),
		core.ResourceEphemeralStorage: resource.MustParse("20Gi"),
	}
	status := core.NodeStatus{
		Capacity:    room,
		Allocatable: room,
		Conditions: []core.NodeCondition{{
			Type: core.NodeReady, Status: core.ConditionTrue, Reason: "KubeletReady",
			LastHeartbeatTime: meta.Now(), LastTransitionTime: meta.Now(),
		}},
		Addresses: []core.NodeAddress{
			{Type: core.NodeInternalIP, Address: "127.0.0.1"},
			{Type: core.NodeHostName, Address: *name},
		},
		DaemonEndpoints: core.NodeDaemonEndpoints{KubeletEndpoint: core.DaemonEndpoint{Port: node.port}},
	}
	// Controllers write to a node, too.
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		made, err := nodes.Get(context.TODO(), *name, meta.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range made.Status.Conditions {
			if condition.Type == core.NodeReady && condition.Status == core.ConditionTrue {
				return nil
			}
		}
		made.Status = status
		_, err = nodes.UpdateStatus(context.TODO(), made, meta.UpdateOptions{})
		return err
	})
}

// renew tells the cluster that the node lives.
func (node *Node) renew() {
	leases := node.client.CoordinationV1().Leases(leaseSpace)
	for ; ; time.Sleep(renewal) {
		now, seconds := meta.NowMicro(), leaseFor
		lease := &coordination.Lease{
			ObjectMeta: meta.ObjectMeta{Name: *name, Namespace: leaseSpace},
			Spec: coordination.LeaseSpec{
				HolderIdentity: name, LeaseDurationSeconds: &seconds, RenewTime: &now,
			},
		}
		known, err := leases.Get(context.TODO(), *name, meta.GetOptions{})
		switch {
		case errors.IsNotFound(err):
			_, err = leases.Create(context.TODO(), lease, meta.CreateOptions{})
		case err == nil:
			lease.ResourceVersion = known.ResourceVersion
			_, err = leases.Update(context.TODO(), lease, meta.UpdateOptions{})
		}
		if err == nil {
			err = node.beReady()
		}
		if err != nil {
			log.Print(err)
		}
	}
}

// reconcile starts, reports and ends containers, as the API server has the pods.
func (node *Node) reconcile() error {
	bound := meta.ListOptions{FieldSelector: "spec.nodeName=" + *name}
	list, err := node.client.CoreV1().Pods("").List(context.TODO(), bound)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, pod := range list.Items {
		known[string(pod.UID)] = true
		if err := node.advance(&pod); err != nil && !errors.IsNotFound(err) {
			log.Printf("%s: %v", pod.Name, err)
		}
	}
	node.pods.endAllBut(known)
	return nil
}

func (node *Node) advance(pod *core.Pod) error {
	ended := pod.Status.Phase == core.PodSucceeded || pod.Status.Phase == core.PodFailed
	container := node.pods.find(string(pod.UID))
	if pod.DeletionTimestamp != nil {
		if container != nil && container.runs() {
			container.terminate(time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
			return nil
		}
		if !ended {
			return node.report(pod, container)
		}
		return node.remove(pod)
	}
	if ended {
		return nil
	}
	if container == nil {
		if strings.HasPrefix(pod.Spec.Containers[0].Image, "missing") {
			return node.report(pod, nil)
		}
		started, err := node.pods.start(pod)
		if err != nil {
			return err
		}
		container = started
	}
	return node.report(pod, container)
}

func (node *Node) remove(pod *core.Pod) error {
	now := int64(0)
	pods := node.client.CoreV1().Pods(pod.Namespace)
	same := &meta.Preconditions{UID: &pod.UID}
	return pods.Delete(context.TODO(), pod.Name,
		meta.DeleteOptions{GracePeriodSeconds: &now, Preconditions: same})
}

// report writes the pod's status where it has changed.
func (node *Node) report(pod *core.Pod, container *Container) error {
	spec := pod.Spec.Containers[0]
	one := core.ContainerStatus{Name: spec.Name, Image: spec.Image}
	phase := core.PodPending
	switch {
	case container == nil && pod.DeletionTimestamp != nil:
		phase = core.PodFailed
	case container == nil:
		one.State.Waiting = &core.ContainerStateWaiting{
			Reason: "ErrImagePull", Message: "the registry has no image " + spec.Image,
		}
	case container.runs():
		phase, one.Ready = core.PodRunning, true
		one.State.Running = &core.ContainerStateRunning{StartedAt: container.begun}
	default:
		code := container.code()
		phase = core.PodSucceeded
		reason := "Completed"
		if code != 0 {
			phase, reason = core.PodFailed, "Error"
		}
		one.State.Terminated = &core.ContainerStateTerminated{
			ExitCode: code, Reason: reason, StartedAt: container.begun, FinishedAt: meta.Now(),
		}
	}
	waits := container == nil && pod.DeletionTimestamp == nil
	if pod.Status.Phase == phase && !(waits && len(pod.Status.ContainerStatuses) == 0) {
		return nil
	}
	status := pod.Status.DeepCopy()
	status.Phase, status.ContainerStatuses = phase, []core.ContainerStatus{one}
	status.HostIP, status.PodIP = "127.0.0.1", "127.0.0.1"
	status.PodIPs = []core.PodIP{{IP: "127.0.0.1"}}
	changed := pod.DeepCopy()
	changed.Status = *status
	pods := node.client.CoreV1().Pods(pod.Namespace)
	_, err := pods.UpdateStatus(context.TODO(), changed, meta.UpdateOptions{})
	return err
}
