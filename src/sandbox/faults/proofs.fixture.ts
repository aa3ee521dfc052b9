import { expect } from 'vitest';
import type { Bench } from './bench.fixture.ts';
import type { FaultName } from './catalog/catalog.ts';

export type Proof = (bench: Bench) => Promise<void>;

export const reset = { message: 'fetch failed', cause: { code: 'ECONNRESET' } };
export const otherSideClosed = { message: 'fetch failed', cause: { code: 'UND_ERR_SOCKET' } };

/** A read gets a faulty answer once. Later reads are normal. */
export function readsOnce(
  name: FaultName,
  check: (reply: Awaited<ReturnType<Bench['ask']>>) => void,
  settings: object = {},
): Proof {
  return async ({ make, arm, read }) => {
    const id = await make();
    await arm(name, { ...settings, instance: id });
    check(await read(id));
    expect(await read(id)).toMatchObject({ status: 200, body: { id, status: 'ONLINE' } });
  };
}

/** A request fails in its handshake, and never reaches the server. */
export function failsHandshake(code: string): (name: FaultName) => Proof {
  return (name) =>
    async ({ arm, order, ask, sandbox: { control }, account }) => {
      const armed = await arm(name);
      await expect(order('refused')).rejects.toMatchObject({ message: 'fetch failed', cause: { code } });
      expect(await control.journal.entries({ account })).toEqual([]);
      expect(armed.hits).toBe(1);
      expect((await ask('GET', '/instances')).body.instances).toEqual([]);
    };
}

/** Any request gets one error, and has no effect. */
export function refusesOnce(status: number, expected: object = {}): (name: FaultName) => Proof {
  return (name) =>
    async ({ arm, order, ask }) => {
      await arm(name);
      const reply = await order('refused');
      expect(reply.status).toBe(status);
      expect(reply).toMatchObject(expected);
      expect((await ask('GET', '/instances')).body.instances).toEqual([]);
    };
}

/** The platform holds an order: the instance keeps its status, and continues when the fault is disarmed. */
export function holdsAt(status: string, then: string, act: (bench: Bench, id: string) => Promise<unknown>) {
  return (name: FaultName): Proof =>
    async (bench) => {
      const id = await bench.make();
      const armed = await bench.arm(name);
      await act(bench, id);
      await bench.pass(20);
      expect((await bench.read(id)).body.status).toBe(status);
      armed.disarm();
      await bench.until(id, then);
    };
}

/** The platform misbehaves during a create. The instance still becomes ONLINE, with one machine. */
export function isMadeOnce(name: FaultName): Proof {
  return async ({ arm, order, until, sandbox: { faults, providers }, pass }) => {
    const armed = await arm(name, { route: 'create' } as object);
    const { body } = await order('one');
    await until(body.id, 'ONLINE', 300);
    expect(armed.hits).toBeGreaterThan(0);
    faults.clear();
    await pass(60);
    const machines = providers.get('provider-d')?.platform.machines.all() ?? [];
    expect(machines.filter(({ spec }) => spec.note.includes(body.id))).toHaveLength(1);
  };
}

/** Gets or lists of the platform are wrong. Instances stay ONLINE. */
export function endsNothing(name: FaultName): Proof {
  return async ({ make, arm, pass, read }) => {
    const id = await make();
    const armed = await arm(name);
    await pass(60);
    expect(armed.hits).toBeGreaterThan(0);
    expect((await read(id)).body.status).toBe('ONLINE');
  };
}

/** A create ends in ERROR, with its reason. */
export function endsInError(name: FaultName, reason: RegExp, withinS = 1_200): Proof {
  return async ({ arm, order, until }) => {
    await arm(name);
    const { body } = await order('one');
    const { body: failed } = await until(body.id, 'ERROR', withinS);
    expect(failed.error).toMatch(reason);
  };
}

/** An instance becomes ONLINE only once a login is possible. */
export function delaysOnline(name: FaultName): Proof {
  return async ({ arm, order, pass, read, until }) => {
    const armed = await arm(name);
    const { body } = await order('one');
    await pass(30);
    expect((await read(body.id)).body.status).toBe('PROVISIONING');
    armed.disarm();
    await until(body.id, 'ONLINE');
  };
}

export async function stopped({ make, ask, until }: Bench): Promise<string> {
  const id = await make();
  await ask('POST', `/instances/${id}/stop`);
  await until(id, 'STOPPED');
  return id;
}

export const volumeOf = async ({ ask }: Bench, volume: string) =>
  (await ask('GET', `/volumes/${volume}`)).body;
