import { z } from 'zod';
import { instanceStatusSchema } from '../../../contract/instance.ts';
import { timestampSchema } from '../../../contract/values.ts';
import { defineAction, defineView, outsideApi, type TextPart } from '../../../operator-kit/operation.ts';
import { timeOrNullSchema, toTime } from '../../../operator-kit/views/values.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { AlarmRecord } from '../../model/alarm.ts';
import { markOf } from '../../model/marks.ts';
import type { Reader, Store } from '../../model/store.ts';
import { countLosses, LOSS_WINDOW_MS } from '../../platform/loss-cap.ts';
import type { LossCapOptions } from '../../platform/options.ts';
import type { PlatformDetail } from '../views/platform.ts';
import { ActionRefused } from './refused.ts';

const lossesSchema = z
  .object({
    window_s: z.number(),
    platforms: z.array(
      z.object({
        platform: z.string(),
        lost: z.int(),
        allowed: z.int(),
        accepted_until: timeOrNullSchema,
        platform_down_since: timeOrNullSchema,
        volumes_doubted_since: timeOrNullSchema,
        held: z.array(z.object({ id: z.string(), status: instanceStatusSchema, region: z.string() })),
      }),
    ),
  })
  .meta({ id: 'Losses' });
/** The losses of each platform compared with its cap, and the instances that the cap holds back. */
type Losses = z.output<typeof lossesSchema>;

/** A limit above any server's open work, to read all of it. */
const ALL_WORK = 1_000_000;

interface Deps {
  store: Store;
  clock: Pick<Clock, 'now'>;
  /** The configured platforms, by name. */
  platforms: ReadonlyMap<string, unknown>;
}

/** The held instances, and what to do about losses. */
function describe({ platforms }: Losses): TextPart[] {
  const held = platforms.flatMap(({ platform, held }) => held.map((one) => ({ ...one, platform })));
  const isFrozen = platforms.some(
    ({ platform_down_since: down, volumes_doubted_since: doubted }) => (down ?? doubted) !== null,
  );
  return [
    ...(held.length === 0 ? ['No instance is held.'] : ['', held]),
    ...(held.length > 0 || isFrozen
      ? ['To see what is missing: berth alarms ls. Only if it is really lost: berth losses accept']
      : []),
  ];
}

export const lossesView = defineView({
  name: 'getLosses',
  tag: 'Actions',
  path: '/losses',
  summary: 'Lost instances, and instances held over the cap on losses',
  description: 'As `berth losses` shows it.',
  reply: ['The losses.', lossesSchema],
  commands: [
    {
      name: 'losses ls',
      description: 'show how many instances ended as lost, the cap, and which are held',
      list: {},
      toText: describe,
    },
  ],
  list: {
    rows: 'platforms',
    title: 'Losses',
    about: `within ${LOSS_WINDOW_MS / 60_000} minutes; more than allowed are held`,
    none: 'No platform is configured.',
    columns: [
      { field: 'platform', page: ({ platform }) => `/platforms/${encodeURIComponent(platform)}` },
      'lost',
      'allowed',
      { field: 'held', kind: 'count', text: ({ held }) => held.length },
      'accepted_until',
      { field: 'platform_down_since', title: 'frozen since' },
      { field: 'volumes_doubted_since', title: 'volumes not trusted since' },
    ],
  },
  read: async ({ store: { read }, clock, platforms, maxLosses }: Deps & { maxLosses: LossCapOptions }) => {
    const held = await heldInstances(read);
    const marks = async (name: string, mark: 'platform_down_since' | 'volumes_doubted_since') =>
      toTime(await read.marks.get(markOf(name, mark)));
    return {
      window_s: LOSS_WINDOW_MS / 1000,
      platforms: await Promise.all(
        [...platforms.keys()].map(async (name) => {
          const { count, cap, acceptedUntil } = await countLosses(read, maxLosses, clock.now(), {
            platform: name,
          });
          return {
            platform: name,
            lost: count,
            allowed: cap,
            accepted_until: toTime(acceptedUntil),
            platform_down_since: await marks(name, 'platform_down_since'),
            volumes_doubted_since: await marks(name, 'volumes_doubted_since'),
            held: held
              .filter(({ platform }) => platform === name)
              .map(({ id, status, region }) => ({ id, status, region })),
          };
        }),
      ),
    };
  },
});

/** Instances whose loss is held back by the cap, oldest first. */
async function heldInstances({ work, instances }: Pick<Reader, 'work' | 'instances'>) {
  const held = (await work.list(ALL_WORK)).filter(({ isHeld }) => isHeld);
  const rows = await instances.byIds(held.map(({ resourceId }) => resourceId));
  return rows.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
}

/** Kinds of alarms that end when the losses of their platform are accepted. */
const ABOUT_LOSSES: ReadonlySet<string> = new Set(['platform_suspect', 'volumes_suspect', 'losses_held']);

const USUAL_S = 3600;
const LONGEST_S = 24 * 3600;

/**
 * Accepts losses for a time: any number of instances and volumes that the platforms no longer have are ended, also on a
 * platform whose listing is not trusted because machines are missing. A platform that does not answer is refused, since
 * nothing is proved about its machines.
 */
export const acceptLosses = defineAction({
  name: 'acceptLosses',
  tag: 'Actions',
  path: '/losses/accept',
  summary: 'Accept the losses',
  description:
    'For this time, instances missing from the platform are ended without a cap. Refused for a platform that does not answer.',
  input: {
    platform: z.string().optional(),
    for_s: z.int().min(60).max(LONGEST_S).default(USUAL_S).meta({ description: 'For how long, in seconds.' }),
    while_frozen: outsideApi(z.boolean().optional()),
  },
  example: { for_s: USUAL_S },
  reply: ['Until when.', z.object({ platforms: z.array(z.string()), accepted_until: timestampSchema })],
  commands: [
    {
      name: 'losses accept',
      description:
        'accept the losses: for the time of --for, instances whose machines the platform no longer has are ended',
      flags: {
        platform: ['--platform <name>', 'which platform, if there are several'],
        for_s: [
          '--for <time>',
          'how long: minutes or hours, such as 30m or 2h',
          { default: USUAL_S, shownDefault: '"1h"' },
        ],
      },
      toText: ({ accepted_until: until }) => [
        `Losses are accepted until ${until}: a running server ends, within a minute, the instances that the platform no longer has.`,
        'They stay ended, even if their machines turn up again. To stop accepting earlier: berth losses accept --for 1m',
      ],
    },
  ],
  form: {
    title: ({ platform = '' }) => `Accept the losses of ${platform}`,
    button: 'The machines are gone: accept',
    isDangerous: true,
    page: ({ platform }) =>
      platform === undefined ? '/console/platforms' : `/console/platforms/${encodeURIComponent(platform)}`,
    inRows: {
      of: 'showPlatform',
      fields: ({ platform, alarms }: PlatformDetail) =>
        alarms.some(({ kind }) => ABOUT_LOSSES.has(kind)) ? { platform } : undefined,
    },
    // The page may be hours old when its button is pressed.
    parse: (field) => ({ platform: field('platform'), while_frozen: true }),
    preview: async (_reply, { store, platforms }: Deps, input) => [
      ...assertAcceptable(await store.read.alarms.list(), namedPlatforms(platforms, input.platform), true),
      'Then its listing is accepted for an hour: within a minute the instances and volumes that it no longer has are ended as lost, and stay ended even if they reappear.',
    ],
  },
  audit: ({ platform }) => ({
    action: 'losses.accept',
    subject: platform ?? '',
    done: ({ platforms, accepted_until: until }) => ({ subject: platforms.join(' '), detail: { until } }),
  }),
  run: (
    { store, clock, platforms }: Deps,
    { platform, for_s: seconds, while_frozen: isOnlyFrozen = false },
  ) =>
    store.transact(async (tx) => {
      const named = namedPlatforms(platforms, platform);
      assertAcceptable(await tx.alarms.list(), named, isOnlyFrozen);
      const until = clock.now() + seconds * 1000;
      for (const name of named) await tx.marks.put(markOf(name, 'losses_accepted_until'), until);
      return { platforms: named, accepted_until: toTime(until) };
    }),
});

/** The platform of that name, or all. @throws {ActionRefused} if there is none */
function namedPlatforms(platforms: Deps['platforms'], given: string | undefined): string[] {
  const named = [...platforms.keys()].filter((name) => (given ?? name) === name);
  if (named.length > 0) return named;
  throw new ActionRefused(
    `There is no platform ${given}: give one of ${[...platforms.keys()].join(', ')}.`,
    'not_found',
  );
}

/**
 * The texts of the alarms about losses of these platforms.
 *
 * @throws {ActionRefused} if a platform does not answer, or if `isOnlyFrozen` and a platform has no such alarm
 */
function assertAcceptable(
  alarms: readonly AlarmRecord[],
  named: readonly string[],
  isOnlyFrozen: boolean,
): string[] {
  const ofNamed = alarms.filter(({ platform }) => platform !== null && named.includes(platform));
  const down = ofNamed.find(({ kind }) => kind === 'platform_down' || kind === 'platform_taken');
  if (down !== undefined)
    throw new ActionRefused(
      `The state of the machines of ${down.platform} is unknown, and no loss of it can be accepted: ${down.text}`,
    );
  const about = ofNamed.filter(({ kind }) => ABOUT_LOSSES.has(kind));
  const calm = named.find((name) => about.every(({ platform }) => platform !== name));
  if (isOnlyFrozen && calm !== undefined) throw new ActionRefused(`The platform ${calm} is not frozen.`);
  return about.map(({ text }) => text);
}
