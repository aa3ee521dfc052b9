import { expect, it } from 'vitest';
import { CHECKS } from './index.ts';
import { judged, offers, offersWith, recorded } from './read-only.fixture.ts';

it('a hundred thousand offers are judged in bounded time', () => {
  const ids = Array.from({ length: 100_000 }, (_, index) => `offer-${index}`);
  const all = offersWith([...ids, ...ids]);
  const records = recorded(
    ['catalog/configurations', '/configurations', all],
    ['catalog/availability', '/availability', all],
    ['catalog/configurations', '/configurations', offersWith(ids.toReversed())],
    ['catalog/availability', '/availability', offers()],
    ['catalog/of-region', '/availability?region=eu-north', all],
    ['catalog/of-type', '/configurations?instance_type=SPOT', all],
  );
  const before = process.cpuUsage();
  for (const { id } of CHECKS.filter((check) => /^(REG|CFG|AVL)-/.test(check.id))) judged(id, records);
  // Measures only this process, so other load does not affect it.
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1_000).toBeLessThan(20_000);
});
