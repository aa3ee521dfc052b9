import { describe, expect, it, vi } from 'vitest';
import { describeDriver } from '../kit/driver.suite.ts';
import { diagnoseMachines } from './diagnosis/machine-checks.ts';
import { MemoryHost, openMemoryPlatform } from './memory-host.fixture.ts';
import { parseXml, serializeXml } from './xml.ts';

const twoHosts = () => [new MemoryHost(), new MemoryHost({ name: 'kvm-2', public_ip: '192.0.2.2' })] as const;

describeDriver('two hosts whose libvirt is in memory', {
  setup: async () => openMemoryPlatform(twoHosts()).bench.context,
  teardown: ({ driver }) => driver.close(),
});

const REF = 'suite-a';

describe('a machine whose domain lost its mark', () => {
  async function unmarked() {
    const host = new MemoryHost();
    const { bench } = openMemoryPlatform([host]);
    await bench.create(bench.ref('a'));
    const xml = await host.virsh(['dumpxml', '--inactive', '--', REF]);
    const { children, ...rest } = parseXml(xml);
    const others = children.filter((one) => typeof one === 'string' || one.name !== 'metadata');
    host.define(serializeXml({ ...rest, children: others }));
    return { host, driver: bench.driver };
  }

  it('is unknown and never gone, and is left as it is', async () => {
    const { host, driver } = await unmarked();
    const reason = expect.stringContaining('without the metadata');
    expect(await driver.get(REF)).toEqual({ answer: 'unknown', reason });
    expect(await driver.destroy(REF, null)).toMatchObject({ outcome: 'failed', detail: reason });
    expect([...host.domains.keys()]).toEqual([REF]);
    expect([...host.files.keys()]).toContain(`${REF}.qcow2`);
  });

  it('is found by berth doctor, and a foreign domain is not', async () => {
    const { host } = await unmarked();
    host.define('<domain><name>theirs</name><uuid>4b2f7f5e-7b11-4d5c-9f0a-2f6f0a3b6f10</uuid></domain>');
    expect(await diagnoseMachines([host])).toEqual([
      expect.objectContaining({
        verdict: 'broken',
        subject: `machine ${REF} on host kvm-1`,
        finding: expect.stringContaining('without the metadata'),
      }),
    ]);
  });
});

describe('a machine that somebody copied to a second host', () => {
  async function copied() {
    const hosts = twoHosts();
    const { bench } = openMemoryPlatform(hosts);
    await bench.create(bench.ref('a'));
    const [from, to] = hosts[0].domains.size > 0 ? hosts : [hosts[1], hosts[0]];
    for (const [name, file] of from.files) to.files.set(name, file);
    to.define(await from.virsh(['dumpxml', '--inactive', '--', REF]));
    return { hosts, from, to, bench };
  }

  it('is the one that runs, listed once', async () => {
    const { from, to, bench } = await copied();
    const presence = await bench.driver.get(REF);
    expect(presence).toMatchObject({ answer: 'observed', value: { power: 'running', host: from.name } });
    expect(await bench.listed()).toEqual([REF]);
    await from.virsh(['destroy', REF]);
    await to.virsh(['start', '--', REF]);
    expect(await bench.driver.get(REF)).toMatchObject({ value: { power: 'running', host: to.name } });
  });

  it('is destroyed on both', async () => {
    const { hosts, bench } = await copied();
    await bench.destroy(REF);
    for (const { domains, files } of hosts) {
      expect([...domains.keys()]).toEqual([]);
      expect([...files.keys()]).toEqual(['debian.qcow2']);
    }
  });

  it('is found by berth doctor', async () => {
    const { hosts } = await copied();
    expect(await diagnoseMachines(hosts)).toMatchObject([
      { verdict: 'broken', subject: `machine ${REF}`, finding: 'it is on kvm-1 and on kvm-2' },
    ]);
  });
});

it('an image that goes missing in the midst of a create is image_missing', async () => {
  const host = new MemoryHost();
  const { bench } = openMemoryPlatform([host]);
  const first = await bench.driver.create(bench.spec(REF), null);
  expect(first.outcome).toBe('pending');
  host.files.delete('debian.qcow2');
  expect(await bench.driver.create(bench.spec(REF), 'kvm-1')).toMatchObject({
    outcome: 'failed',
    code: 'image_missing',
    detail: 'kvm-1 has no debian.qcow2: berth image import puts it there',
  });
});

it('a host that hangs keeps neither the listing nor the count of the others', async () => {
  const hosts = twoHosts();
  const { bench } = openMemoryPlatform(hosts);
  vi.useFakeTimers();
  try {
    hosts[0].virsh = () => new Promise(() => {});
    const answers = Promise.all([bench.driver.list(), bench.driver.inventory?.()]);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await answers).toMatchObject([
      { hosts: { answered: ['kvm-2'], silent: ['kvm-1'] } },
      { answer: 'counted' },
    ]);
  } finally {
    vi.useRealTimers();
  }
});

it('a host that is away takes no machine, what it has stays unknown, and the listing of the others names it', async () => {
  const hosts = twoHosts();
  const { bench } = openMemoryPlatform(hosts);
  hosts[0].isAway = true;
  expect(await bench.create(bench.ref('a'))).toMatchObject({ host: 'kvm-2' });
  const asked = { answered: ['kvm-2'], silent: ['kvm-1'] };
  expect(await bench.driver.get('suite-b')).toMatchObject({ answer: 'unknown', hosts: asked });
  expect(await bench.driver.list()).toMatchObject({
    answer: 'listed',
    items: [{ ref: REF, host: 'kvm-2' }],
    hosts: asked,
  });
  hosts[1].isAway = true;
  expect(await bench.driver.list()).toMatchObject({ answer: 'unknown' });
});

it('a host that an operator has cordoned in Berth takes no machine', async () => {
  const { bench } = openMemoryPlatform(twoHosts());
  const create = (avoidHosts: string[]) => bench.driver.create({ ...bench.spec(REF), avoidHosts }, null);
  expect(await create(['kvm-1', 'kvm-2'])).toMatchObject({ outcome: 'failed', code: 'capacity' });
  expect(await create(['kvm-1'])).toMatchObject({ outcome: 'pending' });
  expect(await bench.driver.get(REF)).toMatchObject({ value: { host: 'kvm-2' } });
});
