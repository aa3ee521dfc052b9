import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { publicKey } from '../deployments/market.fixture.ts';
import { proveSsh } from './prove-ssh.ts';
import { ProviderWorkers } from './provider-workers.ts';
import {
  accept,
  billed,
  countLines,
  MINUTE_MS,
  openProviderWorkers,
  read,
  running,
  type SyncSetup,
  seededRandom,
  stopped,
} from './sync.fixture.ts';
import { contextOf } from './worker.fixture.ts';

let setup: SyncSetup;
beforeEach(async () => {
  setup = await openProviderWorkers();
});
afterEach(() => setup.close());

/** Advances the clock in small steps until the condition holds. */
async function until(isSo: () => boolean | Promise<boolean>, stepMs = 1_000): Promise<number> {
  for (let step = 0; step < 3_600; step++) {
    if (await isSo()) return setup.clock.now();
    await setup.clock.advance(stepMs);
  }
  throw new Error('it did not come about');
}

const isOnline = () => setup.plain.instances[0]?.status === 'ONLINE';
const statusOf = async (id: string) => (await read(setup, id)).status;

describe('a machine that its provider reports as ONLINE', () => {
  it('runs and is billed from the first possible login of its user, not before [ssh-proof-starts-bill]', async () => {
    setup.ssh.fault = () => 'closed';
    const since = setup.clock.now();
    const id = await accept(setup);
    setup.workers.start();
    await until(isOnline);
    await setup.clock.advance(3 * MINUTE_MS);
    expect(await read(setup, id)).toMatchObject({ status: 'deploying', startedAt: null, sshPort: null });
    expect(await billed(setup, id, since)).toEqual([]);
    setup.ssh.fault = () => 'none';
    await until(async () => (await statusOf(id)) === 'running');
    const { startedAt, sshProof } = await read(setup, id);
    const proved = setup.ssh.probes.find(({ ok }) => ok);
    expect(proved?.target).toEqual({ host: '192.0.2.1', port: 22, username: 'ubuntu' });
    expect(proved?.keys).toEqual([publicKey]);
    expect(startedAt).toBeGreaterThanOrEqual(proved?.at ?? Number.NaN);
    expect(sshProof).toMatchObject({ provedAt: proved?.at, provedEndpoint: 'ubuntu@192.0.2.1:22', keys: [] });
    expect(await billed(setup, id, since)).toEqual([`running 2000000 ${((startedAt ?? 0) - since) / 1000}–`]);
    expect((await setup.store.read.mail.list({ limit: 9 })).map(({ kind }) => kind)).toEqual([
      'deployment_ready',
    ]);
  });

  it.each([
    ['closed', 'the connection to its SSH port failed'],
    ['hangs', 'no SSH server answered on its SSH port'],
    ['refuses', 'its SSH server did not accept the key'],
  ] as const)(
    'and whose SSH is %s fails after ten minutes, unbilled, and is deleted [ssh-proof-fails]',
    async (fault, words) => {
      setup.ssh.fault = () => fault;
      const id = await accept(setup, { tempSshKeyId: 'ssh-temp' });
      setup.workers.start();
      const onlineAt = await until(isOnline);
      await setup.clock.advance(10 * MINUTE_MS - 1_000);
      expect(await statusOf(id)).toBe('deploying');
      const endedAt = await until(async () => (await statusOf(id)) !== 'deploying');
      expect(endedAt - onlineAt).toBeLessThan(11 * MINUTE_MS);
      expect(await read(setup, id)).toMatchObject({
        status: 'failed',
        failureReason: 'ssh_unreachable',
        startedAt: null,
        totalCostMicroUsd: 0,
        failureDetails: `SSH login failed for 10 minutes: ${words}. The machine is being removed.`,
      });
      expect(await billed(setup, id, 0)).toEqual([]);
      await setup.clock.advance(MINUTE_MS);
      expect([setup.plain.instances, (await read(setup, id)).cleanup]).toEqual([[], 'done']);
      expect(await setup.store.read.sshKeys.byId('ssh-temp')).toBeNull();
      expect(countLines(setup.logged, 'warn', 'does not accept an SSH login yet')).toBe(1);
    },
  );

  it('gets its ten minutes even where the deploy timeout ends first', async () => {
    setup.plain.options.bootMs = 14 * MINUTE_MS;
    setup.ssh.fault = () => 'closed';
    const id = await accept(setup);
    setup.workers.start();
    await until(isOnline);
    await setup.clock.advance(8 * MINUTE_MS);
    expect(await statusOf(id)).toBe('deploying');
    setup.ssh.fault = () => 'none';
    await setup.clock.advance(MINUTE_MS);
    expect(await statusOf(id)).toBe('running');
  });

  it('and whose provider stops answering fails when its time is over', async () => {
    setup.ssh.fault = () => 'closed';
    const id = await accept(setup);
    setup.workers.start();
    await until(isOnline);
    await setup.clock.advance(MINUTE_MS);
    setup.plain.faults.plan = (method) => (method === 'getInstance' ? 'refuse' : 'none');
    await setup.clock.advance(15 * MINUTE_MS);
    expect(await read(setup, id)).toMatchObject({ status: 'failed', failureReason: 'provisioning_timeout' });
  });

  it('that names no login user is proved by its SSH server alone', async () => {
    const id = await accept(setup);
    setup.workers.start();
    await until(isOnline);
    setup.plain.set('i-1', { ssh_username: '' });
    await setup.clock.advance(MINUTE_MS);
    expect(await statusOf(id)).toBe('running');
    expect(setup.ssh.probes.at(-1)?.keys).toEqual([]);
  });

  it('at a new address is proved there', async () => {
    const id = await accept(setup);
    setup.workers.start();
    await until(isOnline);
    const record = await read(setup, id);
    await setup.store.transact((tx) =>
      tx.deployments.update({
        ...record,
        sshProof: {
          ...proofOf(record),
          provedEndpoint: 'ubuntu@192.0.2.99:22',
          provedAt: setup.clock.now(),
        },
      }),
    );
    setup.ssh.fault = () => 'closed';
    await setup.clock.advance(MINUTE_MS);
    expect(await statusOf(id)).toBe('deploying');
    expect(setup.ssh.probes.at(-1)?.target.host).toBe('192.0.2.1');
  });

  it('whose address changes once, just before its time is over, is proved at the new one', async () => {
    const id = await accept(setup);
    setup.workers.start();
    await until(isOnline);
    const record = await read(setup, id);
    const provedAt = setup.clock.now();
    const old = { provedEndpoint: 'ubuntu@192.0.2.99:22', provedAt, attempts: 30 };
    const sshProof = { ...proofOf(record), ...old, onlineAt: provedAt - 10 * MINUTE_MS };
    await setup.store.transact((tx) => tx.deployments.update({ ...record, sshProof }));
    await setup.clock.advance(MINUTE_MS);
    expect(await statusOf(id)).toBe('running');
  });

  it('whose address changes at each poll fails, unbilled, and is deleted [ssh-proof-moving-address]', async () => {
    setup.plain.faults.plan = (method, nth) =>
      method === 'getInstance'
        ? { answer: (instance) => ({ ...instance, ssh_username: nth % 2 === 0 ? 'ubuntu' : 'root' }) }
        : 'none';
    const id = await accept(setup);
    setup.workers.start();
    await until(isOnline);
    await setup.clock.advance(21 * MINUTE_MS);
    expect(await read(setup, id)).toMatchObject({
      status: 'failed',
      failureReason: 'ssh_unreachable',
      failureDetails:
        'SSH login failed for 20 minutes: its address changed after each login. The machine is being removed.',
      startedAt: null,
      totalCostMicroUsd: 0,
    });
    expect(setup.plain.instances).toEqual([]);
  });
});

function proofOf({ sshProof }: Awaited<ReturnType<typeof read>>) {
  if (sshProof === null) throw new Error('there is no proof');
  return sshProof;
}

describe('a process that ends', () => {
  it('keeps the proof for the next process', async () => {
    const id = await accept(setup);
    setup.workers.start();
    const provedAt = async () => (await read(setup, id)).sshProof?.provedAt ?? null;
    // The process stops before a poll uses the proof.
    setup.plain.faults.plan = (method) =>
      method === 'getInstance' && setup.ssh.probes.length > 0 ? 'refuse' : 'none';
    await until(async () => (await provedAt()) !== null, 100);
    await stopped(setup.clock, setup.workers);
    setup.plain.faults.plan = () => 'none';
    setup.ssh.fault = () => 'closed';
    const heir = new ProviderWorkers({ ...setup.deps, random: seededRandom(7) });
    heir.start();
    await setup.clock.advance(MINUTE_MS);
    expect([await statusOf(id), setup.ssh.probes.length]).toEqual(['running', 1]);
    await stopped(setup.clock, heir);
  });

  it('keeps the elapsed time for the next process', async () => {
    setup.ssh.fault = () => 'closed';
    const id = await accept(setup);
    setup.workers.start();
    const onlineAt = await until(isOnline);
    await setup.clock.advance(5 * MINUTE_MS);
    await stopped(setup.clock, setup.workers);
    const heir = new ProviderWorkers({ ...setup.deps, random: seededRandom(7) });
    heir.start();
    const endedAt = await until(async () => (await statusOf(id)) === 'failed');
    expect(endedAt - onlineAt).toBeLessThan(11 * MINUTE_MS);
    await stopped(setup.clock, heir);
  });

  it('and is not replaced for a long time leaves the machine more than one try', async () => {
    setup.ssh.fault = () => 'closed';
    const id = await accept(setup);
    setup.workers.start();
    await until(() => setup.ssh.probes.length === 1, 100);
    await stopped(setup.clock, setup.workers);
    await setup.clock.advance(20 * MINUTE_MS);
    const heir = new ProviderWorkers({ ...setup.deps, random: seededRandom(7) });
    heir.start();
    await until(() => setup.ssh.probes.length === 2, 100);
    setup.ssh.fault = () => 'none';
    await setup.clock.advance(MINUTE_MS);
    expect(await statusOf(id)).toBe('running');
    await stopped(setup.clock, heir);
  });

  it('in the middle of a try writes nothing where another process has continued', async () => {
    const id = await accept(setup);
    setup.workers.start();
    await until(isOnline);
    await stopped(setup.clock, setup.workers);
    const context = contextOf(setup.deps, setup.provider);
    const endpoint = { ipAddress: '192.0.2.1', sshPort: 22, loginUser: 'ubuntu', portForwards: [] };
    context.awaitingProof.set(id, { endpoint, seenAt: setup.clock.now() });
    setup.ssh.fault = () => 'hangs';
    context.call = { timeoutMs: 10_000 };
    const trying = proveSsh(context, id);
    await setup.clock.advance(5_000);
    const record = await read(setup, id);
    const other = { ...proofOf(record), provedEndpoint: 'ubuntu@192.0.2.1:22', provedAt: setup.clock.now() };
    await setup.store.transact((tx) => tx.deployments.update({ ...record, sshProof: other }));
    await setup.clock.advance(10_000);
    expect(await trying).toBe(true);
    expect((await read(setup, id)).sshProof).toEqual(other);
  });
});

it('a host that hangs delays no other deployment, and no poll [ssh-proof-hang-isolated]', async () => {
  await setup.close();
  setup = await openProviderWorkers({ bootMs: 1_000 });
  const { id: live } = await running(setup, { number: 1 });
  setup.ssh.fault = (instanceId) => (instanceId === 'i-42' ? 'none' : 'hangs');
  for (let number = 2; number <= 42; number++) await accept(setup, { number });
  const from = setup.clock.now();
  await until(() => setup.plain.instances.length === 42);
  const last = `dep-${'42'.padStart(32, '0')}`;
  const name = `bm-00c0ffee-${'42'.padStart(32, '0')}`;
  // The good machine is the one that the provider made last.
  const good = setup.plain.instances.find((it) => it.id === 'i-42')?.name ?? name;
  const goodId = good === name ? last : `dep-${good.slice(-32)}`;
  const ranAt = await until(async () => (await statusOf(goodId)) === 'running');
  expect(ranAt - from).toBeLessThan(45_000);
  await setup.clock.advance(2 * MINUTE_MS);
  const { instances } = setup.plain;
  const polls = setup.plain.faults.calls.filter(
    ({ method, id, at }) => method === 'getInstance' && id === instances[0]?.id && at >= from,
  );
  const pauses = polls.slice(1).map(({ at }, index) => at - (polls[index]?.at ?? 0));
  expect(Math.max(...pauses)).toBeLessThanOrEqual(31_000);
  expect(await statusOf(live)).toBe('running');
});

describe('no proof is needed by', () => {
  it('a deployment that is stopped and started: it was proved once, and its tenant may close SSH', async () => {
    const { id, instanceId } = await running(setup);
    setup.ssh.fault = () => 'closed';
    setup.plain.stop(instanceId);
    await until(async () => (await statusOf(id)) === 'stopped');
    setup.plain.start(instanceId);
    await until(async () => (await statusOf(id)) === 'running');
    expect(setup.ssh.probes).toHaveLength(1);
  });

  it('a deployment of a provider with `verify_ssh: false`', async () => {
    setup.ssh.fault = () => 'closed';
    setup.provider.sshProbe = null;
    const { id } = await running(setup);
    expect([await statusOf(id), setup.ssh.probes]).toEqual(['running', []]);
  });
});

it.each([
  ['closed', 'connect', '`verify_ssh: false`'],
  ['refuses', 'auth', 'whether it injects the keys'],
] as const)(
  'a failure says what to do: the SSH server is %s [ssh-proof-alarm]',
  async (fault, step, advice) => {
    setup.ssh.fault = (instanceId) => (instanceId === 'i-1' ? fault : 'none');
    await accept(setup, { number: 1 });
    await accept(setup, { number: 2 });
    setup.workers.start();
    await until(isOnline);
    await setup.clock.advance(8 * MINUTE_MS);
    expect(countLines(setup.logged, 'error', '')).toBe(0);
    await setup.clock.advance(5 * MINUTE_MS);
    const errors = setup.logged.filter(({ level }) => level === 'error');
    expect(errors).toMatchObject([{ fields: { provider: 'provider-x', instance: 'i-1', step } }]);
    expect(errors[0]?.message).toContain(advice);
  },
);
