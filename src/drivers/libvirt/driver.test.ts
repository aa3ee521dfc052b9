import { describe, expect, it } from 'vitest';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import { DEFAULT_CALL_MS } from '../../work/lease-time.ts';
import { describeDriver } from '../kit/driver.suite.ts';
import { aCatalog } from './catalog.fixture.ts';
import { diagnoseMachines } from './diagnosis/diagnose.ts';
import { MemoryHost } from './memory-host.fixture.ts';
import { aMachine, openMemoryPlatform } from './platform.fixture.ts';
import { faultOf } from './trouble.ts';
import { parseXml, serializeXml } from './xml.ts';

const twoHosts = () => [new MemoryHost(), new MemoryHost({ name: 'kvm-2', public_ip: '192.0.2.2' })] as const;

describeDriver('two hosts whose libvirt is in memory', {
  setup: async () => {
    const { context } = openMemoryPlatform(twoHosts()).bench;
    // As the core does, this keeps a volume and its machine on one host.
    return { ...context, volumeSpec: (ref) => ({ ...context.volumeSpec(ref), host: 'kvm-1' }) };
  },
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
    const reason = expect.stringContaining("without Berth's metadata");
    expect(await driver.get(REF)).toEqual({ answer: 'unknown', reason });
    expect(await driver.destroy(REF, null, anOrder)).toMatchObject({ outcome: 'failed', detail: reason });
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
        finding: expect.stringContaining("without Berth's metadata"),
      }),
    ]);
  });
});

describe('a machine that was copied to a second host', () => {
  async function copied() {
    const hosts = twoHosts();
    const { bench } = openMemoryPlatform(hosts);
    await bench.create(bench.ref('a'));
    const [from, to] = hosts[0].domains.size > 0 ? hosts : [hosts[1], hosts[0]];
    for (const [name, file] of from.files) to.files.set(name, file);
    to.define(await from.virsh(['dumpxml', '--inactive', '--', REF]));
    return { hosts, from, to, bench };
  }

  it('is listed once, as the running one', async () => {
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

it('fails a create with image_missing when the image disappears during it', async () => {
  const host = new MemoryHost();
  const { bench } = openMemoryPlatform([host]);
  const first = await bench.driver.create(bench.spec(REF), null);
  expect(first.outcome).toBe('pending');
  host.files.delete('debian.qcow2');
  expect(await bench.driver.create(bench.spec(REF), 'kvm-1')).toMatchObject({
    outcome: 'failed',
    code: 'image_missing',
    detail: 'kvm-1 has no debian.qcow2: put it into its pool, as docs/how-to/libvirt.md shows',
  });
});

it('a host that hangs delays neither the listing nor the inventory of the others', async () => {
  const hosts = twoHosts();
  const { bench } = openMemoryPlatform(hosts);
  hosts[0].virsh = () => new Promise(() => {});
  const answers = Promise.all([bench.driver.list(), bench.driver.inventory?.()]);
  await bench.context.wait(DEFAULT_CALL_MS);
  expect(await answers).toMatchObject([
    { hosts: { answered: ['kvm-2'], silent: ['kvm-1'] } },
    { answer: 'counted' },
  ]);
});

it('a host that is away gets no machine, its machines stay unknown, and the listing of the others names it', async () => {
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

it('a domain that libvirt does not answer about keeps its last known state, with a fault, and delays nothing else [libvirt-silent-domain]', async () => {
  const host = new MemoryHost();
  const { bench } = openMemoryPlatform([host]);
  const { driver } = bench;
  for (const name of ['a', 'b']) await bench.create(bench.ref(name));
  const [listed, counted] = [await driver.list(), await driver.inventory?.()];
  if (listed.answer !== 'listed') throw new Error('it was not listed');
  host.silent.add(REF);
  const fault = { finding: expect.stringContaining(`about the domain ${REF}`), remedy: expect.any(String) };
  const [first, ...others] = listed.items;
  const items = [{ ...first, fault, isLastKnown: true }, ...others];
  expect(await driver.list()).toEqual({ ...listed, items });
  expect(await driver.inventory?.()).toEqual(counted);
  const reason = expect.stringContaining(`about the domain ${REF}`);
  expect(await driver.get(REF)).toEqual({ answer: 'unknown', reason });
  const waits = { outcome: 'failed', code: 'transient' };
  expect(await driver.destroy(REF, null, anOrder)).toMatchObject({ ...waits, detail: reason });
  expect(await driver.get('suite-z')).toMatchObject({ answer: 'gone' });
  await bench.create(bench.ref('c'));
  const made = expect.objectContaining({ ref: 'suite-c' });
  const all = { items: expect.arrayContaining([...items, made]), leftovers: [], hosts: { silent: [] } };
  expect(await driver.list()).toMatchObject(all);
  // Without libvirt's folders, such as in a container, a domain might be missing.
  host.hasFolders = false;
  expect(await driver.list()).toMatchObject(all);
  expect(await driver.inventory?.()).toMatchObject({ answer: 'unknown' });
  expect(await driver.get('suite-z')).toMatchObject({ answer: 'unknown' });
  host.hasFolders = true;
  host.lastKnown.clear();
  const named = [expect.objectContaining({ verdict: 'broken', finding: reason })];
  expect(await diagnoseMachines([host])).toEqual(named);
  // Whether the silent domain has the disk of the other is not known.
  expect(await driver.destroy('suite-b', null, anOrder)).toMatchObject(waits);
  host.silent.clear();
  for (const name of ['a', 'b', 'c']) await bench.destroy(bench.ref(name));
});

describe('a machine that libvirt has paused', () => {
  async function paused(pause: string) {
    const host = new MemoryHost();
    const { bench } = openMemoryPlatform([host]);
    await bench.create(bench.ref('a'));
    const domain = host.domains.get(REF);
    if (domain === undefined) throw new Error('it was not made');
    domain.pause = pause;
    const listed = async () => {
      const listing = await bench.driver.list();
      return listing.answer === 'listed' ? listing.items[0] : undefined;
    };
    return { host, bench, domain, listed };
  }

  it.each([
    ['user', { power: 'paused', detail: 'user' }],
    ['I/O error', { power: 'paused', detail: 'I/O error (vda: no space)' }],
    ['pmsuspended', { power: 'paused', detail: 'the guest suspended itself' }],
    [
      'dumping',
      {
        power: 'running',
        fault: { finding: expect.stringContaining('dumping'), remedy: expect.any(String) },
      },
    ],
  ])('for "%s" is shown with the reason', async (reason, shown) => {
    const { bench, listed } = await paused(reason);
    expect(await listed()).toMatchObject(shown);
    const { power } = shown;
    expect(await bench.driver.get(REF)).toMatchObject({ answer: 'observed', value: { power } });
  });

  it.each(['starting up', 'shutting down'])(
    'for "%s", as during a start or stop, is running without a fault',
    async (reason) => {
      const { listed } = await paused(reason);
      const { power, fault } = (await listed()) ?? {};
      expect([power, fault]).toEqual(['running', undefined]);
    },
  );

  it.each(['user', 'pmsuspended'])('for "%s" resumes on a start, with its memory kept', async (reason) => {
    const { bench, domain } = await paused(reason);
    const { live } = domain;
    await bench.start(REF);
    expect([domain.pause, domain.live === live]).toEqual([undefined, true]);
  });

  it.each(['user', 'I/O error', 'crashed', 'pmsuspended'])(
    'for "%s" is stopped and destroyed',
    async (reason) => {
      const { bench, host, domain } = await paused(reason);
      await bench.stop(REF);
      expect([domain.live, host.files.has(`${REF}.qcow2`)]).toEqual([undefined, true]);
      await bench.start(REF);
      domain.pause = reason;
      await bench.destroy(REF);
      expect(host.domains.size).toBe(0);
    },
  );
});

describe('a problem that does not stop a machine is reported as its fault', () => {
  it('for a disk whose file is missing, full or read-only, and for a process that is stopped', async () => {
    const host = new MemoryHost();
    const { bench } = openMemoryPlatform([host]);
    await bench.create(bench.ref('a'));
    const fault = async () => {
      const listing = await bench.driver.list();
      return listing.answer === 'listed' ? listing.items[0]?.fault : undefined;
    };
    expect(await fault()).toBeUndefined();
    host.filesystem.freeGb = 0.05;
    expect(await fault()).toMatchObject({ finding: expect.stringContaining('is full') });
    host.halted.add(REF);
    expect(await fault()).toMatchObject({ remedy: expect.stringContaining('kill -CONT') });
    host.halted.clear();
    host.filesystem.mode = 'ro';
    expect(await fault()).toMatchObject({ finding: expect.stringContaining('read-only') });
    host.files.delete(`${REF}.qcow2`);
    const finding = `its disk /images/${REF}.qcow2 is missing`;
    expect(await fault()).toMatchObject({
      finding,
      remedy: expect.stringContaining('Copy its data from inside the guest'),
    });
    await bench.stop(REF);
    expect(await fault()).toMatchObject({ finding, remedy: expect.stringContaining('Restore the file') });
  });

  it.each([
    ['br0', undefined],
    ['ovs-system', undefined],
    ['other', 'not on br0'],
    [undefined, undefined],
    ['', 'not on br0'],
  ])('a card that is on %s where it belongs on br0', (at, finding) => {
    const domain = { name: REF, disks: [], card: { device: 'vnet0', bridge: 'br0' } };
    const bridges = new Map(at === undefined ? [] : [['vnet0', at]]);
    const shown = { ref: REF, running: true, pause: undefined, domain };
    const none = new Set<string>();
    const around = { bridges, missing: none, readOnly: none, full: none, halted: none };
    const fault = faultOf(shown, around);
    if (finding === undefined) expect(fault).toBeUndefined();
    else
      expect(fault).toEqual({
        finding: expect.stringContaining(finding),
        remedy: expect.stringMatching(/virsh net-start NETWORK.* then restart libvirtd/),
      });
    expect(faultOf({ ...shown, running: false }, around)).toBeUndefined();
  });
});

it('a machine whose restart was given up after its power was cut is stopped', async () => {
  const { driver } = await aMachine();
  for (const cookie of [null, 'kvm-1'])
    expect(await driver.restart('berth-a', 'one', cookie)).toMatchObject({ outcome: 'pending' });
  expect(await driver.get('berth-a')).toMatchObject({ value: { power: 'stopped' } });
});

it('a start fails finally without the disk, but not without the whole pool [libvirt-disk-lost]', async () => {
  const host = new MemoryHost();
  const { bench } = openMemoryPlatform([host]);
  await bench.create(bench.ref('a'));
  await bench.stop(REF);
  const disk = host.files.get(`${REF}.qcow2`);
  host.files.delete(`${REF}.qcow2`);
  expect(await bench.driver.start(REF, null)).toMatchObject({ outcome: 'failed', code: 'disk_lost' });
  const others = [...host.files];
  host.files.clear();
  expect(await bench.driver.start(REF, null)).not.toMatchObject({ code: 'disk_lost' });
  for (const [name, file] of others) host.files.set(name, file);
  if (disk !== undefined) host.files.set(`${REF}.qcow2`, disk);
  await bench.start(REF);
});

it.each(['/images/suite-a.flat', '/nvme/suite-a.qcow2'])(
  'a disk that an operator moved to %s is not lost',
  async (path) => {
    const host = new MemoryHost();
    const { bench } = openMemoryPlatform([host]);
    await bench.create(bench.ref('a'));
    await bench.stop(REF);
    const { definition } = host.domains.get(REF) ?? {};
    if (definition === undefined) throw new Error('it was not made');
    host.define(serializeXml(definition).replace(`/images/${REF}.qcow2`, path));
    host.files.delete(`${REF}.qcow2`);
    host.files.set(`${REF}.flat`, { content: Buffer.alloc(0), bytes: 1 });
    expect(await bench.driver.start(REF, null)).not.toMatchObject({ code: 'disk_lost' });
  },
);

it('a delete waits for the snapshots of an operator, and names their files [libvirt-foreign-snapshot]', async () => {
  const host = new MemoryHost();
  const { bench } = openMemoryPlatform([host]);
  await bench.create(bench.ref('a'));
  host.files.set(`${REF}.before-upgrade`, { content: Buffer.alloc(0), bytes: 1 });
  const refusal = { outcome: 'failed', detail: expect.stringContaining(`${REF}.before-upgrade`) };
  expect(await bench.driver.destroy(REF, null, anOrder)).toMatchObject(refusal);
  expect([host.domains.get(REF)?.live, host.files.has(`${REF}.qcow2`)]).toEqual([undefined, true]);
  host.files.delete(`${REF}.before-upgrade`);
  Object.assign(host.domains.get(REF) ?? {}, { snapshots: ['inside'] });
  const detail = expect.stringMatching(/snapshot inside.*virsh snapshot-delete suite-a/);
  expect(await bench.driver.destroy(REF, null, anOrder)).toMatchObject({ ...refusal, detail });
  expect(host.files.has(`${REF}.qcow2`)).toBe(true);
  Object.assign(host.domains.get(REF) ?? {}, { snapshots: [] });
  await bench.destroy(REF);
  expect(host.domains.size).toBe(0);
});

it('a machine whose QEMU process did not end is neither stopped nor gone, although libvirt shows it as shut off [libvirt-undead]', async () => {
  const host = new MemoryHost();
  const { bench } = openMemoryPlatform([host]);
  await bench.create(bench.ref('a'));
  const domain = host.domains.get(REF);
  host.alive.add(domain?.uuid ?? '');
  delete domain?.live;
  const refusal = { outcome: 'failed', code: 'transient', detail: expect.stringContaining('QEMU process 7') };
  expect(await bench.driver.stop(REF, null)).toMatchObject(refusal);
  expect(await bench.driver.destroy(REF, null, anOrder)).toMatchObject(refusal);
  expect(host.files.has(`${REF}.qcow2`)).toBe(true);
  host.alive.clear();
  await bench.destroy(REF);
});

it('a delete removes the snapshots if the configuration says so', async () => {
  const host = new MemoryHost();
  const { bench } = openMemoryPlatform([host], undefined, { on_foreign_snapshot: 'delete' });
  await bench.create(bench.ref('a'));
  host.files.set(`${REF}.before-upgrade`, { content: Buffer.alloc(0), bytes: 1 });
  Object.assign(host.domains.get(REF) ?? {}, { snapshots: ['inside'] });
  await bench.destroy(REF);
  expect([...host.files.keys()]).toEqual(['debian.qcow2']);
});

it.each([
  ['auto', 'qemu'],
  ['kvm', 'kvm'],
  ['tcg', 'qemu'],
])(
  'on a host whose KVM does not work, a machine with accelerator %s is of type %s',
  async (accelerator, type) => {
    const host = new MemoryHost();
    host.fastestAccelerator = async () => 'tcg';
    const { bench } = openMemoryPlatform([host], aCatalog(), { accelerator });
    await bench.create(REF);
    expect(host.domains.get(REF)?.definition.attributes['type']).toBe(type);
  },
);

it.each([
  ['its network is not active', { isNetworkActive: false }],
  ['its pool berth is not active', { isPoolActive: false }],
  ['its pool is full: 0.0 GB are free', { filesystem: { mode: 'rw', freeGb: 0 } }],
  ['the file system of its pool berth, /images, is read-only', { filesystem: { mode: 'ro', freeGb: 400 } }],
  ['it has 29 free GB of disk, but 50 are needed', { filesystem: { mode: 'rw', freeGb: 39 } }],
  ['it has no network filter clean-traffic', { hasFilters: false }],
  ['it has no flock', { facts: ['clock\t1', 'state\twritable', 'missing\tflock'] }],
  ['its state folder /var/lib/berth cannot be written', { facts: ['clock\t1'] }],
  ['its pool has no debian.qcow2', { files: new Map() }],
  ['it has no UEFI firmware for libvirt', { capabilities: { uefi: false, kvm: true } }],
  ['its libvirt has no KVM', { capabilities: { uefi: true, kvm: false } }],
])('a host sells nothing and gets no machine where %s [libvirt-startable]', async (reason, hurt) => {
  const hosts = twoHosts();
  const { bench } = openMemoryPlatform(hosts, aCatalog({ uefi: true }), { accelerator: 'kvm' });
  const units = async () => {
    const counted = await bench.driver.inventory?.();
    return counted?.answer === 'counted' ? counted.free.map((one) => one.units) : [];
  };
  const both = await units();
  Object.assign(hosts[0], hurt);
  const one = await units();
  expect(one).toEqual(both.map((count) => count / 2));
  await bench.create(bench.ref('a'));
  expect([hosts[0].domains.size, hosts[1].domains.size]).toEqual([0, 1]);
  Object.assign(hosts[1], hurt);
  expect(await units()).toEqual(both.map(() => 0));
  const step = await bench.driver.create(bench.context.machineSpec(bench.ref('b')), null);
  expect(step).toMatchObject({ outcome: 'failed', detail: expect.stringContaining(reason) });
});
