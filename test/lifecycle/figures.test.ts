import { expect, it } from 'vitest';
import { figuresView } from '../../src/orchestrator/operate/figures/figures.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { actor } from './operator-actions.fixture.ts';

const MINUTE = 60_000;

type Berth = Awaited<ReturnType<typeof startPlainOrchestrator>>;
type Input = Parameters<typeof figuresView.perform>[2];

const read = (berth: Berth, input: Readonly<Record<string, string>>) =>
  figuresView.perform({ store: berth.orchestrator.store, clock: berth.clock }, actor, {
    range: '24h',
    csv: undefined,
    ...input,
  } as unknown as Input);

it('figures show how full each offer is, what was earned, how creates ended and what the platform answered, also as CSV', async () => {
  await using berth = await startPlainOrchestrator(({ method }, nth) =>
    method === 'create' && nth === 2
      ? { kind: 'misclaim', code: 'image_missing', sideEffect: 'none', isDone: false }
      : 'none',
  );
  const place = { offer: 'cpu-4x16', region: 'eu-frankfurt' };
  const id = await berth.create();
  await berth.passUntil(`/instances/${id}`, 'ONLINE');
  await berth.passUntil(`/instances/${await berth.create()}`, 'ERROR');
  // Until after the next sample.
  await berth.clock.advance(5 * MINUTE - (berth.clock.now() % (5 * MINUTE)) + MINUTE / 4);
  const units = (await read(berth, { figure: 'units', ...place })).whole;
  expect(units?.['sold']).toBeGreaterThanOrEqual(1);
  expect(units?.['in_repair']).toBeGreaterThanOrEqual(0);
  const { sold = 0, in_repair = 0, not_for_sale = 0, free = 0 } = units ?? {};
  expect(sold + in_repair + not_for_sale + free).toBeCloseTo(units?.['units'] ?? 0);
  const everything = (await read(berth, { figure: 'units' })).whole;
  expect(everything?.['units']).toBeGreaterThan(units?.['units'] ?? 0);
  expect((await read(berth, { figure: 'units', offer: 'no-such-offer' })).whole).toBeNull();
  expect((await read(berth, { figure: 'earned', ...place })).whole?.['earned']).toBeGreaterThan(0);
  expect((await read(berth, { figure: 'creates', ...place })).whole).toEqual({
    online: 1,
    failed: 1,
    deleted: 0,
  });
  expect((await read(berth, { figure: 'failures' })).whole).toEqual({ 'create: image_missing': 1 });
  const time = (await read(berth, { figure: 'online_time' })).whole;
  expect(time?.['p95']).toBeGreaterThanOrEqual(time?.['p50'] ?? Number.NaN);
  const answers = (await read(berth, { figure: 'answers', platform: 'default', call: 'create' })).whole;
  expect(answers).toMatchObject({ done: 1, image_missing: 1 });
  expect((await read(berth, { figure: 'call_time', platform: 'default' })).whole?.['p50']).toBeDefined();
  expect((await read(berth, { figure: 'answers', platform: 'elsewhere' })).whole).toBeNull();
  const { orchestrator } = berth;
  const authorization = `Bearer ${await orchestrator.addOperator('mara')}`;
  const send = (query: string, accept: string) =>
    orchestrator.operator.request(`/operator/v1/figures?${query}`, { headers: { authorization, accept } });
  const csv = await send('figure=creates&range=24h', 'text/csv');
  expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8');
  const lines = (await csv.text()).trimEnd().split('\n');
  expect([lines.length, lines[0], lines.at(-1)?.replace(/^[^,]+/, '')]).toEqual([
    25,
    'at,online,failed,deleted',
    ',1,1,0',
  ]);
  expect(await (await send('figure=creates', '*/*')).json()).toMatchObject({
    figure: 'creates',
    step: 'hour',
  });
  expect((await send('range=1y', '*/*')).status).toBe(400);
});
