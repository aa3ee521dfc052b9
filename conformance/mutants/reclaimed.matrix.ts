import { expect, it } from 'vitest';
import { loadRequirements } from '../contract/requirements.ts';
import { reddened, runAgainst } from './harness.ts';
import type { AutoClock } from './reference/auto-clock.ts';
import type { Instance, Volume } from './reference/model.ts';
import type { Rules } from './reference/rules.ts';

const { rows } = loadRequirements();

/** The platform reclaims the newest or the oldest SPOT instance when the suite reaches a step. */
function reclaimingAt(step: string, which: 0 | -1) {
  return (rules: Rules, hit: () => void, clock: AutoClock): Rules => {
    const instances = new Map<string, Instance>();
    const gone = new Set<string>();
    const release = ({ attachments }: Volume): void => {
      for (const id of gone) attachments.delete(id);
    };
    const reclaim = (): void => {
      const live = [...instances.values()].filter(
        ({ status, offer }) => offer.instanceType === 'SPOT' && !status.startsWith('DESTROY'),
      );
      const instance = live.at(which);
      if (instance === undefined || gone.size > 0) return;
      hit();
      gone.add(instance.id);
      instance.cancel();
      instance.status = 'DESTROYED';
      instance.destroyedAtMs = clock.now();
      void clock.during(instance.endpoint.close());
    };
    return {
      ...rules,
      isAuthorized(request, credential) {
        if (request.headers['user-agent']?.includes(` ${step}`)) reclaim();
        return rules.isAuthorized(request, credential);
      },
      statusShown(instance) {
        instances.set(instance.id, instance);
        return rules.statusShown(instance);
      },
      volumeStatus(volume) {
        release(volume);
        return rules.volumeStatus(volume);
      },
      mayDelete(volume) {
        release(volume);
        return rules.mayDelete(volume);
      },
    };
  };
}

it.each([
  ['volumes/attach/post', 0],
  ['volumes/attach/poll', 0],
  ['volumes/again/post', 0],
  ['volumes/delete-attached/delete', 0],
  ['volumes/detach-one/post', 0],
  ['volumes/attach-for-all/post', 0],
  ['volumes/inline/create', 0],
  ['volumes/force-delete/detach', 0],
  ['companion/poll', -1],
  ['companion/attach/post', -1],
  ['companion/detach-one/post', 0],
] as const)('finds no failure where a SPOT instance is reclaimed at %s', async (step, which) => {
  const subject = { run: { offer: 'cpu-spot' }, behave: reclaimingAt(step, which) };
  const trial = await runAgainst(subject, rows);
  expect(trial.hits).toBe(1);
  expect(reddened(trial)).toEqual([]);
  expect(trial.tookMs, 'virtual time, of one patience at the most').toBeLessThan(2_400_000);
});
