import type { Mutant } from '../mutant.ts';
import type { Instance } from '../reference/model.ts';
import type { Kept, Rules } from '../reference/rules.ts';

/** Calls `spoil` with the state that a restart leaves, and then replaces rules. */
function afterRestart(
  spoil: (state: Kept, hit: () => void, wallMs: number) => void,
  change: (rules: Rules, isRestarted: () => boolean, hit: () => void) => Partial<Rules> = () => ({}),
): Mutant['behave'] {
  return (rules, hit, clock) => {
    let isRestarted = false;
    return {
      ...rules,
      ...change(rules, () => isRestarted, hit),
      afterRestart(state) {
        isRestarted = true;
        spoil(state, hit, clock.wall());
      },
    };
  };
}

function each(change: (instance: Instance, wallMs: number) => void) {
  return ({ instances }: Kept, hit: () => void, wallMs: number): void => {
    hit();
    for (const instance of instances.values()) change(instance, wallMs);
  };
}

/** Servers that lose or change something at a restart. */
export const restartMutants: readonly Mutant[] = [
  {
    id: 'restart-forgets-volumes',
    breaks: 'A volume is read until it is deleted.',
    reddens: ['RESTART-VOL-001', 'VOL-READ-001'],
    behave: afterRestart(({ volumes }, hit) => {
      hit();
      volumes.clear();
    }),
  },
  {
    id: 'restart-makes-all-stopped',
    breaks: 'Status values are accurate.',
    reddens: ['RESTART-INS-001'],
    alsoIn: ['start'],
    behave: afterRestart(
      each((instance, wallMs) => {
        if (instance.status !== 'ONLINE') return;
        instance.status = 'STOPPED';
        instance.updatedAtMs = wallMs;
      }),
    ),
  },
  {
    id: 'restart-renames-instances',
    breaks: 'An instance keeps its name where nothing was asked of it.',
    reddens: ['RESTART-SAME-001'],
    behave: afterRestart(
      () => {},
      (rules, isRestarted, hit) => ({
        showInstance(instance, shown, request) {
          const usual = rules.showInstance(instance, shown, request);
          if (!isRestarted() || usual['private_ip'] === undefined) return usual;
          hit();
          return { ...usual, name: `${usual['name']}-restored` };
        },
      }),
    ),
  },
  {
    id: 'restart-numbers-offers-anew',
    breaks: 'An offer’s id is stable.',
    reddens: ['CFG-OMIT-001', 'CFG-STABLE-001', 'RESTART-OFFER-001'],
    behave: afterRestart(
      () => {},
      (rules, isRestarted, hit) => ({
        showOffer(offer, shown, list) {
          const usual = rules.showOffer(offer, shown, list);
          if (!isRestarted() || offer.id !== 'metal-epyc') return usual;
          hit();
          return { ...usual, id: 'metal-epyc-1' };
        },
      }),
    ),
  },
];
