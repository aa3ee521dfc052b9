import { expect, it } from 'vitest';
import { isSoldByCount } from './counts.ts';

const place = { offerId: 'cpu', region: 'eu-north' };

it('I33: at rest a free unit that is not offered, and one that is offered and not free', () => {
  expect(() => isSoldByCount(place, 1, [])).toThrow('I33');
  expect(() => isSoldByCount(place, 0, ['eu-north'])).toThrow('I33');
  isSoldByCount(place, 1, ['eu-north']);
  isSoldByCount(place, -1, []);
});
