import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Host, openHost } from '../client.ts';
import { aDomain, aMark } from '../domain-xml.fixture.ts';
import { toDomainXml, uuidOf } from '../domain-xml.ts';
import { geForce, openHostWith } from '../gpus/sysfs.fixture.ts';
import { someHostOptions } from '../host-options.fixture.ts';
import type { HostOptions } from '../options.ts';
import { readPause } from '../trouble.ts';
import { listDomains } from './domains.ts';
import { openHostShell } from './host-shell.ts';
import { readHostView } from './host-view.ts';
import { aWish } from './room.fixture.ts';
import { unitsOn } from './room.ts';

const foreign = (
  name: string,
  state: string,
  gpu = '',
): string => `<domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>
  <test:runstate>${state}</test:runstate><name>${name}</name><uuid>${uuidOf(name)}</uuid>
  <metadata><x:note xmlns:x='urn:x'>&lt;/domain&gt;<![CDATA[</domain>]]></x:note></metadata>
  <memory unit='GiB'>3</memory><vcpu>3</vcpu><os><type>hvm</type></os>
  <devices>${gpu}</devices></domain>`;
const hostdev = `<hostdev mode='subsystem' type='pci'><source><address domain='0' bus='0x65' slot='0' function='1'/></source></hostdev>`;

const volume = (name: string): string =>
  `<volume><name>${name}</name><capacity unit='GiB'>10</capacity><target><path>/images/${name}</path></target></volume>`;

/** A host of libvirt's test driver. Each virsh call starts it again from a file. */
function openTestHost(
  domains: readonly string[],
  options: Partial<HostOptions> = {},
  volumes: readonly string[] = [],
): Host {
  const folder = mkdtempSync(join(tmpdir(), 'berth-test-host-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const node = `<node>
    <cpu><mhz>2000</mhz><model>x86_64</model><active>16</active><nodes>1</nodes><sockets>1</sockets><cores>16</cores><threads>1</threads></cpu>
    <memory>67108864</memory>${domains.join('')}
    <pool type='dir'><name>berth</name><capacity unit='GiB'>500</capacity><allocation>0</allocation><target><path>/images</path></target>${volumes.map(volume).join('')}</pool>
    </node>`;
  writeFileSync(join(folder, 'node.xml'), node);
  return openHost(
    someHostOptions({ uri: `test://${folder}/node.xml`, state_dir: join(folder, 'state'), ...options }),
  );
}

const view = (host: Host) => readHostView(host, openHostShell(host.options), {});

describe('a host of libvirt', () => {
  it('has its size with overcommit, minus the reserve', async () => {
    const { sellable, gpus, cordon } = await view(openTestHost([]));
    expect(sellable).toEqual({ vcpus: 31, memoryMb: 63_488, diskGb: 90 });
    expect([gpus, cordon]).toEqual([[], undefined]);
  });

  it('has claims of Berth’s domains, and of foreign ones while they run', async () => {
    const domains = [
      toDomainXml(aDomain()).replace('type="qemu"', 'type="test"'),
      foreign('db; undefine db', '1'),
      foreign('off', '5', hostdev),
    ];
    const { claims } = await view(openTestHost(domains));
    expect(claims.toSorted((a, b) => a.vcpus - b.vcpus || (a.state < b.state ? -1 : 1))).toEqual([
      { ref: 'berth-inst-1', state: 'held', vcpus: 2, memoryMb: 4096, diskGb: 20, pciFunctions: [] },
      { ref: undefined, state: 'held', vcpus: 3, memoryMb: 3072, diskGb: 0, pciFunctions: [] },
      {
        ref: undefined,
        state: 'released',
        vcpus: 3,
        memoryMb: 3072,
        diskGb: 0,
        pciFunctions: ['0000:65:00.1'],
      },
    ]);
  });

  it('ignores a domain that disappeared between two calls', async () => {
    const host = openTestHost([foreign('one', '1')]);
    const virsh: Host['virsh'] = async (args, call) =>
      args[0] === 'list'
        ? `${await host.virsh(args, call)}\n${crypto.randomUUID()}\n`
        : host.virsh(args, call);
    expect((await listDomains({ ...host, virsh })).map(({ name }) => name)).toEqual(['one']);
  });

  it.each([
    ['1', undefined],
    ['3', 'unknown'],
    ['5', undefined],
    ['6', 'the guest crashed'],
    ['7', 'the guest suspended itself'],
  ])('has a domain in the state %s, whose processors are halted because: %s', async (state, reason) => {
    const host = openTestHost([foreign('one', state)]);
    const [domain] = await listDomains(host);
    expect([domain?.running, domain?.isPaused]).toEqual([state !== '5', reason !== undefined]);
    expect((await readPause(host, 'one'))?.reason).toBe(reason);
  });

  it('is cordoned by a full pool', async () => {
    const host = openTestHost([]);
    // The test driver's host has no active network.
    expect(unitsOn({ ...(await view(host)), fault: undefined }, aWish({ diskGb: 0 }))).toBe(7);
    const full = openTestHost([], { reserve: { vcpus: 0, memory_gb: 0, disk_gb: 1000 } });
    expect((await view(full)).problems.map(({ finding }) => finding)).toContainEqual(
      expect.stringMatching(/^its pool has [\d.]+ GB free, less than reserve.disk_gb, \d+$/),
    );
  });

  it('does not assign a GPU that a foreign domain names [gpu-foreign-claim]', async () => {
    const { place, shell } = openHostWith(geForce);
    const types = { RTX_4090: ['10de:2684'] };
    const run: typeof shell.run = (script, [command = '', , ...rest], ...more) =>
      shell.run(script, [command, place.root, ...rest], ...more);
    const gpusWith = async (domain: string): Promise<unknown[]> =>
      (await readHostView(openTestHost([domain]), { name: 'kvm-1', run }, types)).gpus.map(
        ({ state }) => state,
      );
    expect(await gpusWith(foreign('off', '5'))).toEqual(['free']);
    expect(await gpusWith(foreign('off', '5', hostdev))).toEqual(['claimed']);
    const claimed = aDomain({ mark: aMark({ gpuCount: 1, gpuType: 'RTX_4090', gpus: ['0000:65:00.0'] }) });
    expect(await gpusWith(toDomainXml(claimed).replace('type="qemu"', 'type="test"'))).toEqual(['claimed']);
  });

  it('is not treated as empty if it does not answer', async () => {
    const gone = openTestHost([], { uri: 'qemu+unix:///system?socket=/nonexistent/libvirt-sock' });
    await expect(view(gone)).rejects.toMatchObject({ name: 'VirshError' });
  });
});
