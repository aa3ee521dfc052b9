import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SCENARIOS } from '../../scenarios/index.ts';
import { referenceParts, runCli, sendJson, serveTarget } from '../cli.fixture.ts';

let target: ReturnType<typeof referenceParts>;
beforeEach(() => {
  target = referenceParts();
});
afterEach(() => target[Symbol.asyncDispose]());

const plan = (...args: string[]) => runCli(['plan', target.baseUrl, ...args], { parts: target.parts });

describe('a plan', () => {
  it.each(['read-only', 'lifecycle', 'full'])('of level %s sends nothing but GETs', async (level) => {
    expect((await plan('--level', level, '--max-cost', '100')).code).toBe(0);
    expect(target.sent.length).toBeGreaterThan(0);
    expect(target.sent.filter((line) => !line.startsWith('GET '))).toEqual([]);
  });

  it('sends nothing but GETs to a target that refuses the key, which a token might open', async () => {
    await using refusing = await serveTarget((_request, response) =>
      sendJson(response, 401, { error: { code: 'unauthorized', message: 'no' } }),
    );
    const { code, err } = await runCli(['plan', refusing.baseUrl]);
    expect(code).toBe(3);
    expect(err).toMatch(/CONFIG {2}API key .*`doctor` can tell: a plan sends no POST/);
    expect(refusing.requests.filter((line) => !line.startsWith('GET '))).toEqual([]);
  });

  it('names every scenario, purchase, offer and price, and the worst case', async () => {
    const { out } = await plan('--level', 'full', '--max-cost', '100', '--json');
    const shown = JSON.parse(out);
    expect(shown.scenarios.map(({ id }: { id: string }) => id)).toEqual(SCENARIOS.map(({ id }) => id));
    const instances = shown.purchases.filter(({ type }: { type: string }) => type === 'instance');
    expect(instances.length).toBeGreaterThan(3);
    let total = 0;
    for (const { offer, region, price_per_hour, longest_life_minutes, worst_case_usd } of instances) {
      expect(offer).toBeTypeOf('string');
      expect(region).toBeTypeOf('string');
      expect(longest_life_minutes).toBe(100);
      expect(worst_case_usd).toBeCloseTo((price_per_hour * 100) / 60, 6);
      total += worst_case_usd;
    }
    expect(shown.if_accepted.map(({ scenario }: { scenario: string }) => scenario)).toEqual([
      'refusals',
      'sold-out',
      'volumes',
    ]);
    for (const { worst_case_usd = 0 } of shown.if_accepted) total += worst_case_usd;
    expect(shown.worst_case_usd).toBeCloseTo(total, 6);
    const { out: text } = await plan('--level', 'full', '--max-cost', '100');
    for (const { id } of SCENARIOS) expect(text).toContain(`  ${id} `);
    expect(text).toMatch(/It may cost up to \$\d/);
  });

  it('counts a race as one unit more than there are, at the price of its offer', async () => {
    const { out } = await plan('--level', 'full', '--race', 'gpu-l4=2', '--max-cost', '100', '--json');
    const racing = JSON.parse(out).purchases.filter(({ offer }: { offer?: string }) => offer === 'gpu-l4');
    expect(racing).toHaveLength(3);
    expect(racing[0].price_per_hour).toBe(0.8);
  });

  it('over the cap is shown all the same, and exits 3 with the number to pass', async () => {
    const { code, out, err } = await plan('--max-cost', '0.01');
    expect(code).toBe(3);
    expect(out).toContain('What it creates');
    expect(err).toMatch(/pass --max-cost \d/);
  });

  it('of level read-only costs nothing', async () => {
    expect((await plan('--level', 'read-only')).out).toMatch(/It creates nothing\.\n\nIt costs nothing\./);
  });
});
