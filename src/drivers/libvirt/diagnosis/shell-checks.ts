import type { Catalog } from '../../../orchestrator/catalog/catalog.ts';
import type { Clock } from '../../../ports/clock.ts';
import { broken, type Diagnosis, ok, warning } from '../../../ports/diagnosis.ts';
import { diagnoseClock } from '../../kit/diagnosis.ts';
import type { Host } from '../client.ts';
import { VirshError } from '../errors.ts';
import type { Gpu } from '../gpus/gpus.ts';
import { type HostFacts, readHostFacts, runHostScript, type ScriptPlace } from '../hosts/host-facts.ts';
import type { HostShell } from '../hosts/host-shell.ts';
import type { HostView } from '../hosts/room.ts';
import type { LibvirtConfig } from '../options.ts';

export interface CheckedHost {
  host: Host;
  shell: HostShell;
  config: LibvirtConfig;
  catalog: Catalog;
  clock: Clock;
}

const placeOf = ({ host }: CheckedHost): ScriptPlace => ({ stateDir: host.options.state_dir });

/** Checks the host's shell, its facts, and the difference between its clock and Berth's. */
export async function diagnoseShell(
  checked: CheckedHost,
): Promise<{ facts: HostFacts | undefined; diagnoses: Diagnosis[] }> {
  const { host, shell, clock } = checked;
  const subject = `shell on host ${host.name}`;
  try {
    const before = clock.now();
    const facts = await readHostFacts(shell, placeOf(checked));
    return {
      facts,
      diagnoses: [
        ok(subject, 'it runs the commands of Berth'),
        diagnoseClock(`host ${host.name}`, facts.clockMs, before, clock.now()),
        ...(host.options.network.mode === 'nat' ? await diagnoseForwarding(checked) : []),
      ],
    };
  } catch (error) {
    if (!(error instanceof VirshError)) throw error;
    const remedy =
      'Check that `ssh HOST true` works without a prompt for the user that runs Berth, and that the host has a POSIX sh.';
    return { facts: undefined, diagnoses: [broken(subject, error.message, remedy)] };
  }
}

const HOOKS = ['/etc/libvirt/hooks/qemu.d/berth', '/etc/libvirt/hooks/qemu'];

/** Checks what forwards packets from the host's ports to machines behind its NAT. */
async function diagnoseForwarding(checked: CheckedHost): Promise<Diagnosis[]> {
  const { host, shell } = checked;
  const { public_ip: address = '' } = host.options;
  const place = placeOf(checked);
  const [hooks, network] = await Promise.all([
    runHostScript(shell, place, ['exists', ...HOOKS]),
    runHostScript(shell, place, ['network']),
  ]);
  const of = (kind: string) =>
    network.lines.flatMap(([first, value = '']) => (first === kind ? [value] : []));
  const found: Diagnosis[] = [];
  const hook = `hook on host ${host.name}`;
  const reached = `address ${address} of host ${host.name}`;
  if (hooks.lines.length > 0) found.push(ok(hook, 'it is installed'));
  else
    found.push(
      broken(
        hook,
        `there is no ${HOOKS[0]}, which forwards ports to machines: no machine that starts can be reached`,
        `install -D -m 755 examples/libvirt/berth-hook ${HOOKS[0]} && systemctl restart libvirtd`,
      ),
    );
  if (of('forward')[0] === '0')
    found.push(
      broken(
        `forwarding on host ${host.name}`,
        'net.ipv4.ip_forward is 0: machines cannot be reached',
        'echo net.ipv4.ip_forward=1 > /etc/sysctl.d/50-berth.conf && sysctl --system',
      ),
    );
  if (of('address').length > 0 && !of('address').includes(address))
    found.push(
      warning(
        reached,
        'no interface of the host has it: machines cannot be reached there, unless a router forwards its ports',
        'Correct public_ip, or do nothing if a router has the address and forwards its ports to this host.',
      ),
    );
  return found;
}

export function diagnoseGpus(checked: CheckedHost, facts: HostFacts, { gpus }: HostView): Diagnosis[] {
  const { host, config } = checked;
  if (Object.keys(config.gpu_types).length === 0) return [];
  if (gpus.length === 0) return [ok(`GPUs of host ${host.name}`, 'it has none of the types in gpu_types')];
  return [
    diagnoseIommu(host.name, facts),
    diagnoseVfio(host.name, facts),
    ...gpus.map((gpu) => diagnoseGpu(checked, gpu)),
  ];
}

function diagnoseIommu(name: string, { iommuOn }: HostFacts): Diagnosis {
  const subject = `IOMMU of host ${name}`;
  const remedy =
    'Enable VT-d or AMD-Vi in the firmware, and boot with intel_iommu=on iommu=pt (AMD: iommu=pt).';
  return iommuOn ? ok(subject, 'it is on') : broken(subject, 'it is off: machines cannot get GPUs', remedy);
}

function diagnoseVfio(name: string, { vfioLoaded }: HostFacts): Diagnosis {
  const subject = `vfio-pci on host ${name}`;
  const remedy = 'On the host: echo vfio-pci > /etc/modules-load.d/vfio.conf; modprobe vfio-pci.';
  return vfioLoaded ? ok(subject, 'it is loaded') : broken(subject, 'it is not loaded', remedy);
}

function diagnoseGpu({ host }: CheckedHost, { address, type, state, reason = '' }: Gpu): Diagnosis {
  const subject = `GPU ${address} (${type}) on host ${host.name}`;
  if (state === 'free' || state === 'claimed') return ok(subject, state === 'free' ? 'it is free' : reason);
  const mark = `${host.options.state_dir}/gpus/${address}`;
  if (state === 'dirty') return warning(subject, reason, 'Berth resets it the next time it reads the host.');
  if (state === 'quarantined')
    return broken(
      subject,
      `it is out of use: ${reason}`,
      `Repair it, then run echo 'dirty operator 1' > ${mark}: Berth tries to reset it again.`,
    );
  return broken(subject, reason, 'Set the host up as docs/how-to/gpus.md describes.');
}
