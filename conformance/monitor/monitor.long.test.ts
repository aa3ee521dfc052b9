import { expect, it } from 'vitest';
import type { Clock } from '../http/clock.ts';
import type { Rules } from '../mutants/reference/rules.ts';
import { cheats } from './cheats.fixture.ts';
import { BUDGET_USD, configOf, failing, untilRented, watchFor, worldOf } from './month.fixture.ts';
import { MS_PER_DAY } from './spending.ts';

const often = configOf({ reads: { mean_hours: 2 } });

it('nine days: certified, with what it saw, and every machine destroyed', async () => {
  const { certificate, left, running, spent } = await watchFor(9, { id: 'provider' });
  expect(certificate).toMatchObject({ status: 'certified', because: [], faults: [] });
  expect(certificate.probes.machines).toBeGreaterThanOrEqual(9);
  expect(certificate.reached.share).toBe(1);
  expect(certificate.clean.share).toBe(1);
  expect(certificate.latency_ms).toMatchObject({ p50: 25, p99: 25 });
  expect({ left, running }).toEqual({ left: 0, running: [] });
  expect(Math.max(...spent.values())).toBeLessThanOrEqual(BUDGET_USD);
  // The monitor counts until it has confirmed the end, and SPOT by the price on demand.
  const real = [...spent.values()].reduce((sum, usd) => sum + usd, 0);
  expect(certificate.spend.usd).toBeGreaterThanOrEqual(real);
  expect(certificate.spend.usd).toBeLessThanOrEqual(10 * BUDGET_USD);
});

it.each(cheats.filter(({ id }) => /leaves-remnants|good-to-the-suite/.test(id)))(
  'nine days: a provider that $does is revoked',
  async (cheat) => {
    const { certificate, alerts } = await watchFor(9, cheat);
    expect(certificate.because.join('\n')).toMatch(cheat.foundBy);
    expect(alerts.at(-1)).toMatchObject({ kind: expect.stringMatching(/status|cannot buy/) });
    expect(alerts.filter(({ kind }) => kind === 'status').at(-1)?.text).toMatch(/→ revoked: /);
  },
);

it('answers of ten megabytes do not fill the state', async () => {
  const filler = 'x'.repeat(10_000_000);
  const { world, start } = worldOf({
    behave: (rules: Rules) => ({
      ...rules,
      answer(request, answer) {
        const usual = rules.answer(request, answer);
        return request.route === 'GET /availability' ? { ...usual, json: { filler } } : usual;
      },
    }),
  });
  const state = await world.openState();
  const config = configOf({ reads: { mean_hours: 0.25 } });
  const { monitor, stop } = await start({ config, state });
  await world.days(0.1);
  const [certificate] = monitor.certificates();
  const digest = certificate?.faults[0]?.transcript_sha256 ?? '';
  expect(state.transcript(digest)?.length).toBeLessThan(2_000_000);
  await stop();
});

it('a clock that is set back by a week does not silence the monitor for a week', async () => {
  const { clock: base, start } = worldOf();
  let offsetMs = 0;
  const clock: Clock = { ...base, wall: () => base.wall() + offsetMs };
  const { monitor, stop } = await start({ clock, config: often });
  await base.sleep(2 * MS_PER_DAY);
  offsetMs = -7 * MS_PER_DAY;
  await base.sleep(2 * MS_PER_DAY);
  const [certificate] = monitor.certificates();
  expect(certificate?.probes.reads).toBeGreaterThan(12);
  await stop();
});

it('while the state is not available nothing is bought, and afterwards all goes on', async () => {
  const { world, clock, reference, start } = worldOf();
  let isDown = false;
  const state = failing(await world.openState(), () => (isDown ? 'the disk is full' : undefined));
  const { monitor, log, stop } = await start({ state, config: often });
  await untilRented(world);
  const before = reference.rented().length;
  isDown = true;
  await clock.sleep(2 * MS_PER_DAY);
  expect(reference.rented()).toHaveLength(before);
  expect(reference.left()).toEqual([]);
  expect(log.join()).toContain('the disk is full');
  isDown = false;
  await clock.sleep(3 * MS_PER_DAY);
  expect(reference.rented().length).toBeGreaterThan(before);
  expect(monitor.certificates()[0]?.probes.reads).toBeGreaterThan(20);
  expect(await stop()).toBe(0);
});
