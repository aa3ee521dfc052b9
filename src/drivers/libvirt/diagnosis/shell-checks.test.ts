import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { markGpu } from '../gpus/machine-gpus.ts';
import { geForce, openHostWith, type SysfsTree } from '../gpus/sysfs.fixture.ts';
import type { HostShell } from '../hosts/host-shell.ts';
import { answering, facts, findingsOf, notOk, type Problem } from './checked-host.fixture.ts';

describe('the prerequisites of NAT', () => {
  const hook = 'etc/libvirt/hooks/qemu.d/berth';
  const whole: Record<string, string> = {
    [hook]: '#!/bin/sh\n',
    'proc/sys/net/ipv4/ip_forward': '1\n',
    'proc/net/fib_trie':
      'Main:\n  +-- 192.0.2.0/30 2 0 2\n     |-- 192.0.2.1\n        /32 host LOCAL\n     |-- 192.0.2.3\n        /32 link BROADCAST\n',
  };

  /** A shell that runs the host script on a file system with these files; `facts` is answered from constants. */
  function withFiles(files: Record<string, string>): HostShell {
    const { shell, place } = openHostWith({});
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(place.root, path)), { recursive: true });
      writeFileSync(join(place.root, path), text);
    }
    const answers = answering(facts);
    const run: HostShell['run'] = (script, [command = '', , ...rest], timeoutMs) =>
      (['exists', 'network'].includes(command) ? shell : answers).run(
        script,
        [command, place.root, ...rest],
        timeoutMs,
      );
    return { name: 'kvm-1', run };
  }

  const { [hook]: _, ...withoutHook } = whole;
  it.each<[string, Record<string, string>, string[]]>([
    [
      'no hook',
      withoutHook,
      ['hook on host kvm-1', `there is no /${hook}`, 'install -D -m 755 examples/libvirt/berth-hook'],
    ],
    [
      'a host that does not forward packets',
      { ...whole, 'proc/sys/net/ipv4/ip_forward': '0\n' },
      ['forwarding on host kvm-1', 'net.ipv4.ip_forward is 0', 'sysctl --system'],
    ],
  ])('%s is broken [libvirt-doctor-forwarding]', async (_name, files, [subject = '', finding, remedy]) => {
    expect(await notOk({ shell: withFiles(files) })).toEqual([
      ['broken', subject, expect.stringContaining(finding ?? ''), expect.stringContaining(remedy ?? '')],
    ]);
  });

  it('warns of a public_ip that no interface has: a router may have it', async () => {
    const shell = withFiles({
      ...whole,
      'proc/net/fib_trie': whole['proc/net/fib_trie']?.replace('2.1\n', '2.2\n') ?? '',
    });
    expect(await notOk({ shell })).toEqual([
      [
        'warning',
        'address 192.0.2.1 of host kvm-1',
        expect.stringContaining('no interface of the host has it'),
        expect.stringContaining('Correct public_ip'),
      ],
    ]);
  });

  it('reports nothing on a host that has them all', async () => {
    expect(await notOk({ shell: withFiles(whole) })).toEqual([]);
  });
});

describe('GPUs', () => {
  const gpuTypes = { RTX_4090: ['10de:2684'] };

  /** A host with a tree of PCI devices; `facts` is answered from constants. */
  function withTree(tree: SysfsTree, says = facts) {
    const { shell, place } = openHostWith(tree);
    const answers = answering(says);
    const run: HostShell['run'] = (script, [command = '', , ...rest], timeoutMs) =>
      command === 'gpus'
        ? shell.run(script, [command, place.root, ...rest], timeoutMs)
        : answers.run(script, [command, '', ...rest], timeoutMs);
    return { shell: { name: 'kvm-1', run }, real: shell, place };
  }

  const ofGpus = async (problem: Problem): Promise<string[]> =>
    (await findingsOf(problem))
      .filter(([, subject]) => /GPU|IOMMU|vfio/.test(subject ?? ''))
      .map(([verdict, subject, finding]) => `${verdict}: ${subject}: ${finding}`);

  it('are not checked when no offer has any', async () => {
    expect(await ofGpus({ shell: withTree(geForce).shell })).toEqual([]);
  });

  it('have one line each, after the IOMMU and the driver', async () => {
    expect(await ofGpus({ gpuTypes, shell: withTree(geForce).shell })).toEqual([
      'ok: IOMMU of host kvm-1: it is on',
      'ok: vfio-pci on host kvm-1: it is loaded',
      'ok: GPU 0000:65:00.0 (RTX_4090) on host kvm-1: it is free',
    ]);
    const none = facts.filter((one) => !/^(iommu|vfio)/.test(one));
    expect(await ofGpus({ gpuTypes, shell: withTree(geForce, none).shell })).toEqual([
      'broken: IOMMU of host kvm-1: it is off: machines cannot get GPUs',
      'broken: vfio-pci on host kvm-1: it is not loaded',
      expect.stringContaining('ok: GPU'),
    ]);
    expect(await ofGpus({ gpuTypes, shell: withTree({}).shell })).toEqual([
      'ok: GPUs of host kvm-1: it has none of the types in gpu_types',
    ]);
  });

  it('are reported with a remedy when they wait for a reset or are out of use', async () => {
    const { shell, real, place } = withTree(geForce);
    await markGpu(real, place, '0000:65:00.0', 'berth-a', '1');
    expect((await ofGpus({ gpuTypes, shell })).at(-1)).toContain('warning: GPU');
    writeFileSync(`${place.root}/var/lib/berth/gpus/0000:65:00.0`, 'quarantined its fan\n');
    const last = (await findingsOf({ gpuTypes, shell })).at(-1);
    expect(last).toEqual([
      'broken',
      'GPU 0000:65:00.0 (RTX_4090) on host kvm-1',
      'it is out of use: its fan',
      "Repair it, then run echo 'dirty operator 1' > /var/lib/berth/gpus/0000:65:00.0: Berth tries to reset it again.",
    ]);
  });
});
