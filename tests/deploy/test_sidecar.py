"""deploy/sidecar.yaml is accepted by Kubernetes' own schemas, and says what a drafter beside an engine needs."""

import copy
import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from pydantic import ByteSize, TypeAdapter

from draftd.config import Settings, load_settings
from draftd.transport.loads import PARALLEL_LOADS

MANIFEST = Path(__file__).parents[2] / "deploy" / "sidecar.yaml"
# The first with native sidecars switched on, the one that made them stable, and one that is newer than both.
KUBERNETES_VERSIONS = ["1.29", "1.33", "1.36"]
PROBES = ["startupProbe", "readinessProbe", "livenessProbe"]

Manifest = dict[str, Any]


@pytest.fixture
def deployment() -> Manifest:
    (document,) = yaml.safe_load_all(MANIFEST.read_text())
    return document


@pytest.fixture
def pod(deployment: Manifest) -> Manifest:
    return deployment["spec"]["template"]["spec"]


@pytest.fixture
def sidecar(pod: Manifest) -> Manifest:
    (container,) = pod["initContainers"]
    return container


@pytest.fixture
def settings(sidecar: Manifest, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """What the server in the pod is told."""
    for variable in sidecar["env"]:
        monkeypatch.setenv(variable["name"], variable["value"])
    return load_settings(None)


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_kubernetes_accepts_the_manifest(deployment: Manifest, version: str) -> None:
    assert kubernetes_validate.validate(deployment, version, strict=True) == version


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_kubernetes_refuses_a_misspelt_field(deployment: Manifest, version: str) -> None:
    broken = copy.deepcopy(deployment)
    broken["spec"]["template"]["spec"]["initContainers"][0]["restartpolicy"] = "Always"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, version, strict=True)


def test_the_drafter_is_a_native_sidecar(sidecar: Manifest) -> None:
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["args"] == ["serve"]


def test_the_socket_lies_in_a_volume_that_both_containers_mount(
    pod: Manifest, sidecar: Manifest, settings: Settings
) -> None:
    (volume,) = pod["volumes"]
    (engine,) = pod["containers"]
    for container in (sidecar, engine):
        assert {"name": volume["name"], "mountPath": str(settings.data_dir)} in container["volumeMounts"]


def test_the_volume_is_on_disk_and_holds_segments_and_uploads(pod: Manifest, settings: Settings) -> None:
    directory = pod["volumes"][0]["emptyDir"]
    assert "medium" not in directory  # in memory, segments would count twice
    uploads = PARALLEL_LOADS * settings.corpora.max_upload_bytes
    assert size_in_bytes(directory["sizeLimit"]) > 2 * settings.limits.process_bytes + uploads


@pytest.mark.parametrize("probe", PROBES)
def test_probes_ask_over_the_hot_path_socket(sidecar: Manifest, settings: Settings, probe: str) -> None:
    scheme, _, name = settings.listen.zmq.partition("://")
    endpoint = f"{scheme}://{settings.data_dir}/{name}"
    assert sidecar[probe]["exec"]["command"] == ["draftd", "health", "--endpoint", endpoint]


def test_a_hung_drafter_leaves_the_service_before_it_is_restarted(sidecar: Manifest) -> None:
    ready, live = (sidecar[probe]["periodSeconds"] * sidecar[probe]["failureThreshold"] for probe in PROBES[1:])
    assert ready < live


def test_the_pod_meets_the_restricted_security_standard(pod: Manifest) -> None:
    context = pod["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] > 0
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    for container in pod["initContainers"] + pod["containers"]:
        own = container["securityContext"]
        assert own["allowPrivilegeEscalation"] is False
        assert own["readOnlyRootFilesystem"] is True
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert not {"privileged", "runAsUser", "runAsNonRoot", "seccompProfile"} & own.keys()


def test_memory_has_room_for_all_that_is_limited(sidecar: Manifest, settings: Settings) -> None:
    resources = sidecar["resources"]
    assert resources["requests"]["memory"] == resources["limits"]["memory"]
    limits = settings.engine.memory_limit + settings.limits.process_bytes
    assert limits < size_in_bytes(resources["limits"]["memory"])


def test_a_core_is_held_ready_and_never_throttled(sidecar: Manifest) -> None:
    assert sidecar["resources"]["requests"]["cpu"]
    assert "cpu" not in sidecar["resources"]["limits"]


def test_the_pod_waits_for_the_drafters_shutdown(pod: Manifest, settings: Settings) -> None:
    assert pod["terminationGracePeriodSeconds"] > settings.listen.shutdown_seconds


def test_admin_over_http_is_reachable_from_the_pod_alone(settings: Settings) -> None:
    assert settings.listen.http.startswith("127.0.0.1:")


def test_the_api_token_is_not_mounted(pod: Manifest) -> None:
    assert pod["automountServiceAccountToken"] is False


def test_every_choice_has_its_reason_beside_it() -> None:
    lines = MANIFEST.read_text().splitlines()
    choices = ("automountServiceAccountToken", "enableServiceLinks", "terminationGracePeriodSeconds", "runAsUser")
    choices += ("fsGroup", "seccompProfile", *PROBES, "requests", "limits", "emptyDir")
    for choice in choices:
        first = next(number for number, line in enumerate(lines) if re.match(rf"\s*(- )?{choice}:", line))
        assert any("#" in line for line in lines[first - 3 : first]), choice


def size_in_bytes(quantity: str) -> int:
    """Kubernetes' 4Gi is 4 GiB."""
    return TypeAdapter(ByteSize).validate_python(quantity + "B")
