import { expect, it } from 'vitest';
import { protocolChecks } from '../drivers/exec/checks.ts';
import { driverChecks } from '../drivers/kit/checks/index.ts';
import { remedies } from './driver-remedies.ts';

it('has a remedy for each check, and for no unknown one', () => {
  const ports = { channel: () => ({}) as never, logged: () => [], now: () => 0 };
  const ids = [...driverChecks, ...protocolChecks(ports)].map(({ id }) => id);
  expect(Object.keys(remedies).sort()).toEqual(ids.sort());
});
