import { expect, it } from 'vitest';
import { toInstance } from '../../../src/orchestrator/instances/transition.ts';
import {
  createdIsKept,
  isToldAsItWas,
  keysAreTaken,
  listIsWhole,
  offersAreWhole,
  polledId,
  tellsNothingOfOthers,
  Validators,
  volumeIsToldAsItWas,
} from './replies.ts';
import { aRecord, aReply, aVolume } from './samples.fixture.ts';

it('I9: 201 without a row', () => {
  expect(() => createdIsKept(aReply({ status: 201 }), undefined)).toThrow('I9');
  createdIsKept(aReply({ status: 201 }), { id: 'inst-1' });
});

it('I5: a state that never was, or was too long ago', () => {
  const [stopping, online] = [aRecord({ status: 'STOPPING', updatedAt: 5_000 }), aRecord()];
  const shown = toInstance(online);
  isToldAsItWas(aReply(), shown, [online, stopping]);
  expect(() => isToldAsItWas(aReply(), shown, [stopping])).toThrow('I5');
  expect(() => isToldAsItWas(aReply(), { ...shown, updated_at: 'else' }, [online])).toThrow('I5');
});

it('I5: a state of a volume that never was', () => {
  const shown = { id: 'vol-1', status: 'AVAILABLE' };
  volumeIsToldAsItWas(aReply(), shown, [aVolume()]);
  expect(() => volumeIsToldAsItWas(aReply(), shown, [aVolume({ status: 'DELETING' })])).toThrow('I5');
  expect(() => volumeIsToldAsItWas(aReply(), shown, [aVolume({ deletedAt: 7 })])).toThrow('gone');
});

it('I8: a list that leaves one out', () => {
  expect(() => listIsWhole(aReply(), new Set(['inst-1']), ['inst-1', 'inst-2'])).toThrow('inst-2');
  listIsWhole(aReply(), new Set(['inst-1']), ['inst-1']);
});

it('I18: an id or a name of another tenant', () => {
  const id = `inst-${'a'.repeat(32)}`;
  const owner = (): string => 'acct-b';
  expect(() => tellsNothingOfOthers(aReply({ text: `"${id}"` }), 'acct-a', owner)).toThrow('I18');
  expect(() => tellsNothingOfOthers(aReply({ text: '"beta-i1"' }), 'acct-a', owner)).toThrow('I18');
  tellsNothingOfOthers(aReply({ text: `"${id}" "alpha-i1"` }), 'acct-b', owner);
});

it('I19: a revoked key that is taken, a valid one that is refused', () => {
  const valid = { validFrom: 0, revokedAt: undefined };
  expect(() => keysAreTaken(aReply({ status: 401 }), valid)).toThrow('I19');
  expect(() => keysAreTaken(aReply(), { validFrom: 0, revokedAt: 1_000 })).toThrow('I19');
  keysAreTaken(aReply(), { validFrom: 0, revokedAt: 9_000 });
  keysAreTaken(aReply({ status: 401 }), { validFrom: 0, revokedAt: 9_000 });
  keysAreTaken(aReply(), valid);
});

it('I16: one ETag for two bodies, two for one', () => {
  const validators = new Validators();
  validators.check(aReply());
  expect(() => validators.check(aReply({ text: '{"a":1}' }))).toThrow('two bodies');
  expect(() => validators.check(aReply({ etag: '"f"' }))).toThrow('two ETags');
});

it('I17: an offer that disappears, one that is not available, an unknown region', () => {
  const known = { offers: new Set(['cpu', 'gpu']), regions: new Set(['eu-north']) };
  const cpu = { id: 'cpu', available: true, regions: ['eu-north'] };
  const [all, some] = ['/v1/configurations', '/v1/availability'];
  const reply = (path: string | undefined, configurations: object[]) =>
    aReply({ path: path ?? '', body: { configurations } });
  expect(() => offersAreWhole(reply(all, [cpu]), known)).toThrow('leaves out');
  expect(() => offersAreWhole(reply(some, [{ ...cpu, available: false }]), known)).toThrow('not available');
  expect(() => offersAreWhole(reply(some, [{ ...cpu, regions: [] }]), known)).toThrow('not available');
  expect(() => offersAreWhole(reply(some, [{ ...cpu, regions: ['mars'] }]), known)).toThrow('mars');
  offersAreWhole(reply(some, [cpu]), known);
  offersAreWhole(reply(all, [cpu, { ...cpu, id: 'gpu' }]), known);
});

it('knows a polled read', () => {
  expect(polledId(aReply())).toBe('inst-1');
  expect(polledId(aReply({ method: 'DELETE' }))).toBeUndefined();
  expect(polledId(aReply({ path: '/v1/instances' }))).toBeUndefined();
});
