import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { recordedOrder } from '../../orchestrator/model/destroy-order.ts';
import type { Call } from '../../orchestrator/model/platform-driver.ts';
import { machineSpec } from '../simulator/simulator.fixture.ts';
import { greetingFor, LISTEN, type Program, say, startProgram } from './program.fixture.ts';

const ORDER = recordedOrder({ reason: 'tenant', by: 'acct-1', at: 17, keepsDisks: true });
const FAILED = { outcome: 'failed', code: 'transient', side_effect: 'none', detail: 'later' };
const PLAIN = { stop: true, attach_volume: 'hot', create_visible_within_ms: 0 };
const ALL = {
  ...PLAIN,
  ...{ place: true, place_volume: true, copy_volume: true, disown: true, fences: true, orders: true },
};

/** A program that gives these answers in turn and records the requests. */
const answering = (capabilities: object, ...answers: object[]): string =>
  [
    greetingFor({ capabilities }),
    ...answers.map(
      (result, at) =>
        `read -r line; printf '%s\\n' "$line" >> "$PLACE/asked"; ${say({ id: `${at + 2}`, result })}`,
    ),
    LISTEN,
  ].join('; ');

function askedOf({ place }: Program): Record<string, unknown>[] {
  const lines = readFileSync(join(place, 'asked'), 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

const callOf = ({ clock }: Program, changed: Partial<Call> = {}): Call => ({
  deadline: clock.now() + 5_000,
  fence: 12,
  signal: new AbortController().signal,
  ...changed,
});

const atHost = { ...machineSpec({ ref: 'a' }), host: 'n1' };
const volumeAtHost = { ref: 'v', datacenter: 'fra', sizeGb: 1, type: undefined, note: '', host: 'n1' };

describe('a program that declares no hosts, fences and orders', () => {
  it('gets none', async () => {
    await using program = await startProgram(answering(PLAIN, FAILED, FAILED, FAILED, FAILED));
    const { driver } = program;
    await driver.create(atHost, null, callOf(program));
    await driver.destroy('berth-a-g1', null, ORDER, callOf(program));
    await driver.volumes?.create(volumeAtHost, null, callOf(program));
    await driver.volumes?.destroy('v', null, ORDER, callOf(program));
    const [create, destroy, createVolume, destroyVolume] = askedOf(program);
    expect(Object.keys(create ?? {})).toEqual(['id', 'method', 'expires_at', 'ref', 'cookie', 'spec']);
    expect(create?.['spec']).not.toHaveProperty('host');
    expect(destroy).toEqual({
      ...{ id: '3', method: 'destroy', expires_at: program.clock.now() + 5_000 },
      ...{ ref: 'berth-a-g1', cookie: null },
    });
    expect(createVolume?.['spec']).not.toHaveProperty('host');
    expect(Object.keys(destroyVolume ?? {})).toEqual(['id', 'method', 'expires_at', 'ref', 'cookie']);
  });

  it('is not asked to place, to copy or to disown', async () => {
    await using program = await startProgram(answering(PLAIN));
    const { driver } = program;
    expect([driver.place, driver.disown, driver.volumes?.place, driver.volumes?.copy]).toEqual(
      Array(4).fill(undefined),
    );
    expect(driver.manifest).toMatchObject({ fences: false });
  });
});

describe('a program that declares hosts, fences and orders', () => {
  it('gets the fence of the claim, the order to destroy, and the host', async () => {
    await using program = await startProgram(answering(ALL, FAILED, FAILED, FAILED, FAILED, FAILED, FAILED));
    const { driver } = program;
    await driver.create(atHost, null, callOf(program));
    await driver.destroy('berth-a-g1', null, ORDER, callOf(program));
    await driver.volumes?.copy?.('v', { ...volumeAtHost, ref: 'v-g1' }, null, callOf(program));
    await driver.volumes?.destroy('v', null, ORDER, callOf(program));
    await driver.stop('a', null);
    await driver.disown?.('a', null, callOf(program));
    const order = { reason: 'tenant', by: 'acct-1', at: 17 };
    expect(askedOf(program)).toMatchObject([
      { method: 'create', fence: 12, spec: { ref: 'a', host: 'n1' } },
      { method: 'destroy', ref: 'berth-a-g1', fence: 12, order },
      { method: 'volumes.copy', ref: 'v', fence: 12, spec: { ref: 'v-g1', host: 'n1' } },
      { method: 'volumes.destroy', fence: 12, order },
      { method: 'stop', ref: 'a' },
      { method: 'disown', ref: 'a', cookie: null, fence: 12 },
    ]);
    expect(askedOf(program)[1]?.['order']).toEqual(order);
    expect(askedOf(program)[4]).not.toHaveProperty('fence');
  });

  it.each(['elsewhere', 'unfinished'])('may fail with the code %s', async (code) => {
    await using program = await startProgram(answering(ALL, { ...FAILED, code, side_effect: 'certain' }));
    expect(await program.driver.stop('a', null)).toMatchObject({ code, sideEffect: 'certain' });
  });

  it('reports changed names, copies and leftovers', async () => {
    const hosts = { answered: ['n1'], silent: [] };
    const value = { ref: 'a', power: 'running', created_at: 1, renamed_to: 'b' };
    const volume = { ref: 'v', attached_to: [], created_at: 1, host: 'n1', renamed_to: 'w' };
    const beside = {
      hosts,
      copies: [{ ref: 'a', name: 'a-clone', host: 'n1' }],
      leftovers: [{ ref: 'x', host: 'n1', detail: 'x.qcow2' }],
    };
    await using program = await startProgram(
      answering(
        ALL,
        { answer: 'listed', items: [value], ...beside },
        { answer: 'listed', items: [volume], ...beside },
        { answer: 'gone', hosts },
      ),
    );
    const { driver } = program;
    expect(await driver.list()).toEqual({
      answer: 'listed',
      items: [{ ref: 'a', power: 'running', createdAt: 1, renamedTo: 'b' }],
      ...beside,
    });
    expect(await driver.volumes?.list()).toEqual({
      answer: 'listed',
      items: [{ ref: 'v', attachedTo: [], createdAt: 1, host: 'n1', renamedTo: 'w' }],
      ...beside,
    });
    expect(await driver.volumes?.get('v')).toEqual({ answer: 'gone', hosts });
  });

  it('answers place, and proves nothing with an invalid answer', async () => {
    const placed = { answer: 'placed', hosts: [{ host: 'n1', units: 2, counted: ['a'] }] };
    const refused = { answer: 'refused', code: 'image_missing', detail: 'no host has it' };
    await using program = await startProgram(
      answering(ALL, placed, refused, { answer: 'placed', hosts: [] }, { ...refused, code: 'gone' }),
    );
    const { driver } = program;
    expect(await driver.place?.(atHost, ['n2'])).toEqual(placed);
    expect(await driver.volumes?.place?.(volumeAtHost, [])).toEqual(refused);
    for (let round = 0; round < 2; round++)
      expect(await driver.place?.(atHost, [])).toEqual({ answer: 'unknown', reason: expect.any(String) });
    const [first, second] = askedOf(program);
    expect(first).toMatchObject({ method: 'place', avoid_hosts: ['n2'], spec: { host: 'n1' } });
    expect(second).toMatchObject({ method: 'volumes.place', spec: { ref: 'v', host: 'n1' } });
    expect(second).toMatchObject({ avoid_hosts: [] });
  });
});

it.each([
  ['the deadline of the call', 5_000, 5_000],
  ['the time that Berth waits, if that is earlier', 9_000, 7_000],
])('a request expires at %s', async (_when, deadlineMs, expiresMs) => {
  await using program = await startProgram(answering(PLAIN, FAILED));
  const now = program.clock.now();
  await program.driver.stop('a', null, callOf(program, { deadline: now + deadlineMs }));
  expect(askedOf(program)[0]?.['expires_at']).toBe(now + expiresMs);
});
