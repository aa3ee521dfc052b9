import { anOrder } from '../../../../test/support/rows/orchestrator-rows.ts';
import {
  type Break,
  broken,
  destroyWithoutLimits,
  manifest,
  onHosts,
  placedNowhere,
  volumes,
  volumesWithoutLimits,
  withoutLimits,
} from './breaks.fixture.ts';

/** Defects in the use of hosts, limits and volumes, by the check that must detect them. */
export const placementDefects: Record<string, [defect: string, breaks: Break][]> = {
  place: [
    [
      'makes everything on the best host',
      (driver) =>
        onHosts(driver, (hosted) => ({
          create: ({ host: _host, ...spec }, cookie) => hosted.create(spec, cookie),
        })),
    ],
    ['names none', (driver) => onHosts(driver, () => ({ place: async () => placedNowhere }))],
  ],
  'place-bound': [
    [
      'names another',
      (driver) =>
        onHosts(driver, (hosted) => ({
          place: ({ host: _host, ...spec }, avoidHosts) => hosted.place(spec, avoidHosts),
        })),
    ],
  ],
  'place-avoid': [
    [
      'names a host to avoid',
      (driver) => onHosts(driver, (hosted) => ({ place: (spec) => hosted.place(spec, []) })),
    ],
    [
      'names no host instead of refusing',
      (driver) =>
        onHosts(driver, (hosted) => ({
          place: async (spec, avoidHosts) => {
            const placing = await hosted.place(spec, avoidHosts);
            return placing.answer === 'refused' ? placedNowhere : placing;
          },
        })),
    ],
  ],
  'volume-place': [
    [
      'makes everything on the best host',
      (driver) =>
        onHosts(driver, (hosted) =>
          volumes(hosted, (given) => ({
            create: ({ host: _host, ...spec }, cookie) => given.create(spec, cookie),
          })),
        ),
    ],
  ],
  'volume-place-bound': [
    [
      'names none',
      (driver) =>
        onHosts(driver, (hosted) =>
          volumes(hosted, (given) => ({
            place: async (spec, avoidHosts) =>
              spec.host === undefined ? (given.place?.(spec, avoidHosts) ?? placedNowhere) : placedNowhere,
          })),
        ),
    ],
  ],
  'volume-place-avoid': [
    [
      'names a host to avoid',
      (driver) =>
        onHosts(driver, (hosted) =>
          volumes(hosted, (given) => ({
            place: async (spec) => given.place?.(spec, []) ?? placedNowhere,
          })),
        ),
    ],
  ],
  'volume-copy': [
    [
      'moves it instead',
      (driver, clock) =>
        onHosts(driver, (hosted) =>
          volumes(hosted, (given) => ({
            copy: async (ref, spec, cookie) => {
              await given.destroy(ref, null, anOrder);
              await clock.advance(1_000);
              return given.create(spec, cookie);
            },
          })),
        ),
    ],
    [
      'answers with the original',
      (driver) =>
        onHosts(driver, (hosted) =>
          volumes(hosted, (given) => ({
            copy: async (ref, spec, cookie) => {
              const step = await given.create(spec, cookie);
              return step.outcome === 'done' ? { ...step, value: { ...step.value, ref } } : step;
            },
          })),
        ),
    ],
  ],
  deadline: [
    ['ignores the deadline', withoutLimits],
    ['destroys after it', destroyWithoutLimits],
    ['makes volumes after it', volumesWithoutLimits],
  ],
  'cancel-before': [
    ['ignores the signal', withoutLimits],
    ['destroys after it', destroyWithoutLimits],
    ['makes volumes after it', volumesWithoutLimits],
  ],
  cancel: [
    ['never settles the create', () => ({ create: () => new Promise(() => undefined) })],
    [
      'settles the create and keeps working',
      (driver, clock) => ({
        create: async (spec) => {
          clock.setTimer(3_000, () => void driver.create(spec, null));
          return broken('internal');
        },
      }),
    ],
  ],
  fence: [
    ['declares fences without comparing them', destroyWithoutLimits],
    ['does not compare the fences of volumes', volumesWithoutLimits],
  ],
  'volume-usage': [
    [
      'declares the opposite of what it does',
      (driver) => manifest(driver, { volumeUsage: driver.volumes?.usage === undefined }),
    ],
    [
      'counts fewer bytes than none',
      (driver) => ({
        ...manifest(driver, { volumeUsage: true }),
        ...volumes(driver, () => ({
          usage: async () => ({ answer: 'listed', items: [{ ref: 'suite-v', usedBytes: -1 }] }),
        })),
      }),
    ],
  ],
  'volume-survives': [
    [
      'destroys the volume with its machine',
      (driver) => ({
        destroy: async (ref, cookie) => {
          await driver.volumes?.destroy('suite-v', null, anOrder);
          return driver.destroy(ref, cookie, anOrder);
        },
      }),
    ],
  ],
};
