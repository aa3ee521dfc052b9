import { expect, it } from 'vitest';
import { TRIAL_ORDER } from '../kit/checks/bench.ts';
import { withMachine } from './driver.fixture.ts';
import { waitForVolume } from './platform.ts';

const DAY_MS = 86_400_000;

it('a removal that begins now is not overdue, however old the machine is [openstack-phase-deadline]', async () => {
  const setting = await withMachine();
  await setting.wait(DAY_MS);
  const first = await setting.driver.destroy(setting.ref, null, TRIAL_ORDER);
  expect(first).toMatchObject({ outcome: 'pending', progress: { phase: 'its server is deleted' } });
  expect(first).not.toHaveProperty('progress.deadlineAt');
});

it.each(['available', 'in-use', 'error'])('a volume that is %s has no deadline', (status) => {
  const step = waitForVolume('detach', { status, updated_at: '2026-01-01T00:00:00.000000' });
  expect(step).toMatchObject({ progress: { phase: `volume ${status}` } });
  expect(step).not.toHaveProperty('progress.deadlineAt');
});

it.each(['creating', 'detaching', 'reserved'])('a volume that is %s has 20 minutes for it', (status) => {
  const step = waitForVolume('detach', { status, updated_at: '2026-01-01T00:00:00.000000' });
  expect(step).toMatchObject({ progress: { deadlineAt: Date.UTC(2026, 0, 1, 0, 20) } });
});
