import { describe, expect, it } from 'vitest';
import { Draws } from '../../transcript/draws.ts';
import { knownRegions } from './regions.ts';

const empty = Array.from({ length: 40 }, (_, index) => `empty-${index}`);

describe('the regions that a run reads', () => {
  it('include one with an available offer, whatever is drawn [regions-drawn]', () => {
    const configurations = [{ regions: [...empty, 'selling', 'selling-too'] }];
    const availability = [{ regions: ['selling', 'selling-too'] }];
    for (let seed = 0; seed < 300; seed += 1) {
      const regions = knownRegions({ configurations, availability, draws: new Draws(`${seed}`) });
      expect(regions.some((region) => region.startsWith('selling'))).toBe(true);
      expect([regions.length, new Set(regions).size]).toEqual([32, 32]);
    }
  });

  it('are drawn alike from all if nothing is available', () => {
    const configurations = [{ regions: empty }];
    const regions = knownRegions({ configurations, availability: [], draws: new Draws('1') });
    expect(regions).toHaveLength(32);
    expect(regions).not.toEqual(empty.slice(0, 32));
  });
});
