import type { AutoClock } from '../mutants/reference/auto-clock.ts';
import { ApiError } from '../mutants/reference/errors.ts';
import type { Disk } from '../mutants/reference/guest.ts';
import type { Instance } from '../mutants/reference/model.ts';
import type { Rules } from '../mutants/reference/rules.ts';
import type { WatchedSubject } from './month.fixture.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const CREATE = 'POST /instances';

type Behave = NonNullable<WatchedSubject['behave']>;

/** A provider that cheats, and the rule that must find it. */
export interface Cheat extends WatchedSubject {
  /** What it does. */
  does: string;
  /** Appears in what revokes it. */
  foundBy: RegExp;
  /** It bills what it says is gone: no monitor can keep the budget then. */
  isBilledAnyway?: true;
}

/** Cheats while `isBad`; is honest otherwise. Both share the state of the reference. */
function whenever(isBad: (clock: AutoClock) => boolean, cheat: Behave): Behave {
  return (rules, clock) => {
    const bad = cheat(rules, clock);
    const pick = (name: keyof Rules): unknown => {
      const [usual, other] = [rules[name], bad[name]] as ((...given: unknown[]) => unknown)[];
      return (...given: unknown[]) => (isBad(clock) ? other : usual)?.(...given);
    };
    return Object.fromEntries(Object.keys(rules).map((name) => [name, pick(name as keyof Rules)])) as never;
  };
}

/** After `minutes`, machines refuse every login and still read ONLINE. */
const deadAfter =
  (minutes: number): Behave =>
  (rules, clock) => ({
    ...rules,
    mayLogin: (instance, attempt) =>
      clock.wall() - instance.createdAtMs < minutes * MINUTE_MS && rules.mayLogin(instance, attempt),
  });

/** Instances cost more than their offer. */
const dearer =
  (factor: number): Behave =>
  (rules) => ({ ...rules, pricePerHour: (instance) => rules.pricePerHour(instance) * factor });

/** Is honest to requests that `isTold` picks, and shows higher prices to all others. */
function honestTo(isTold: (headers: Readonly<Record<string, string>>) => boolean): Behave {
  return (rules) => ({
    ...rules,
    showInstance(instance, given, request) {
      const shown = rules.showInstance(instance, given, request);
      return isTold(request.headers)
        ? shown
        : { ...shown, price_per_hour: Number(shown['price_per_hour']) * 1.2 };
    },
  });
}

const goodToNewKeys: Behave = (rules, clock) => {
  const seenAt = new Map<string, number>();
  let isOld = false;
  const honest = whenever(() => isOld, deadAfter(10))(rules, clock);
  return {
    ...honest,
    isAuthorized(request, credential) {
      const key = request.headers['authorization'] ?? '';
      if (!seenAt.has(key)) seenAt.set(key, clock.now());
      isOld = clock.now() - (seenAt.get(key) ?? 0) > 5 * DAY_MS;
      return rules.isAuthorized(request, credential);
    },
  };
};

/** DELETE hides the machine for half an hour. It runs on, and is listed again. */
const hidesInsteadOfDeleting: Behave = (rules, clock) => {
  const hiddenAt = new Map<string, number>();
  const isHidden = ({ id }: Instance): boolean =>
    clock.now() - (hiddenAt.get(id) ?? Number.NEGATIVE_INFINITY) < 30 * MINUTE_MS;
  return {
    ...rules,
    takesEffect(instance, operation) {
      if (operation !== 'delete') return rules.takesEffect(instance, operation);
      hiddenAt.set(instance.id, clock.now());
      return false;
    },
    statusShown: (instance) => (isHidden(instance) ? 'DESTROYED' : rules.statusShown(instance)),
    isGone: (instance) => isHidden(instance) || rules.isGone(instance),
    mayLogin: (instance, attempt) => !isHidden(instance) && rules.mayLogin(instance, attempt),
  };
};

/** Two of three creates of what it lists are refused. */
const listsWhatItHasNot: Behave = (rules) => {
  let creates = 0;
  return {
    ...rules,
    claimCapacity: (offer, region) => ++creates % 3 === 0 && rules.claimCapacity(offer, region),
  };
};

/** New machines get the disks of earlier ones as these were left. */
const disksAsTheyWereLeft: Behave = (rules) => {
  const disks: Disk[] = [];
  return {
    ...rules,
    bootMs(instance) {
      disks.push(instance.disk);
      return rules.bootMs(instance);
    },
    blocksBefore: () => new Set(disks.flatMap(({ blocks = [] }) => [...blocks])),
  };
};

const hourOf = (clock: AutoClock): number => new Date(clock.wall()).getUTCHours();

export const cheats: readonly Cheat[] = [
  {
    id: 'good-for-a-day',
    does: 'behaves for its first day; then its machines die after ten minutes',
    foundBy: /logins|fails/,
    behave: whenever((clock) => clock.now() > DAY_MS, deadAfter(10)),
  },
  {
    id: 'bad-at-night',
    does: 'its machines let nobody in from 0 to 6 o’clock',
    foundBy: /logins|fails/,
    behave: whenever((clock) => hourOf(clock) < 6, deadAfter(0)),
  },
  {
    id: 'good-to-the-suite',
    does: 'behaves only for the User-Agent of the suite',
    foundBy: /cost more/,
    behave: honestTo((headers) => /berth-conformance/.test(headers['user-agent'] ?? '')),
  },
  {
    id: 'good-to-the-first-key',
    does: 'behaves only for the key with which it was certified',
    foundBy: /cost more/,
    behave: honestTo((headers) => headers['authorization'] === 'Bearer reference-key-one'),
  },
  {
    id: 'good-to-new-keys',
    does: 'behaves only for keys that it has known for less than five days',
    foundBy: /logins|fails/,
    behave: goodToNewKeys,
  },
  {
    id: 'dearer-after-a-week',
    does: 'bills half as much again as its offers say, after a week',
    foundBy: /cost more/,
    behave: whenever((clock) => clock.now() > 7 * DAY_MS, dearer(1.5)),
  },
  {
    id: 'dies-after-an-hour',
    does: 'its machines die after an hour, and still read ONLINE',
    foundBy: /logins|fails/,
    behave: deadAfter(60),
  },
  {
    id: 'bills-what-is-gone',
    does: 'its DELETE only hides the machine',
    foundBy: /MON-GONE/,
    behave: hidesInsteadOfDeleting,
    isBilledAnyway: true,
  },
  {
    id: 'lists-what-it-has-not',
    does: 'lists offers as available whose creates it refuses',
    foundBy: /refused for capacity|fails/,
    behave: listsWhatItHasNot,
  },
  {
    id: 'leaves-remnants',
    does: 'gives new machines the disks of earlier ones',
    foundBy: /MON-REMNANT/,
    behave: disksAsTheyWereLeft,
  },
  {
    id: 'slow-now-and-then',
    does: 'answers every thirtieth read after eight seconds',
    foundBy: /percentile/,
    behave(rules) {
      let reads = 0;
      return {
        ...rules,
        answerDelayMs: (request) =>
          request.method === 'GET' && ++reads % 30 === 0 ? 8000 : rules.answerDelayMs(request),
      };
    },
  },
];

/** A provider that does nothing wrong. */
export interface Lawful extends WatchedSubject {
  why: string;
}

/** The answer of a server in maintenance. */
const inMaintenance = () => ({
  status: 503,
  headers: { 'content-type': 'application/json', 'retry-after': '600' },
  json: { error: { code: 'unavailable', message: 'The service is in maintenance.' } },
});

export const lawful: readonly Lawful[] = [
  { id: 'plain-provider', why: 'it does all as the contract says' },
  { id: 'boots-slowly', why: 'a boot may take up to ten minutes', options: { bootMs: 8 * MINUTE_MS } },
  {
    id: 'sold-out-at-times',
    why: 'capacity may go between the read and the create; then it is no longer listed',
    behave(rules, clock) {
      let creates = 0;
      let soldAt = Number.NEGATIVE_INFINITY;
      const isSold = (): boolean => clock.now() - soldAt < 5 * MINUTE_MS;
      return {
        ...rules,
        isAvailable: (offer, region) => !isSold() && rules.isAvailable(offer, region),
        claimCapacity(offer, region) {
          if (++creates % 4 === 0) soldAt = clock.now();
          return !isSold() && rules.claimCapacity(offer, region);
        },
      };
    },
  },
  {
    id: 'spot-prices-move',
    why: 'the price of a SPOT offer, and of its instances, moves with the market',
    behave(rules, clock) {
      const factor = (): number => 1 + 0.5 * Math.sin(clock.wall() / (3 * DAY_MS));
      return {
        ...rules,
        showOffer(offer, given, list) {
          const shown = rules.showOffer(offer, given, list);
          const spot = offer.spotPricePerHour;
          return spot === undefined ? shown : { ...shown, spot_price_per_hour: spot * factor() };
        },
        pricePerHour: (instance) =>
          rules.pricePerHour(instance) * (instance.offer.instanceType === 'SPOT' ? factor() : 1),
      };
    },
  },
  {
    id: 'in-maintenance-on-sundays',
    why: 'an announced outage (503 with Retry-After) of an hour a week',
    behave: whenever(
      (clock) => new Date(clock.wall()).getUTCDay() === 0 && hourOf(clock) === 3,
      (rules) => ({ ...rules, answer: inMaintenance }),
    ),
  },
  {
    id: 'never-stops',
    why: 'an instance need not be stoppable',
    behave: (rules) => ({ ...rules, mayStop: () => false }),
  },
  {
    id: 'restarts-every-six-hours',
    why: 'a server may be restarted: half a minute without connections',
    behave: (rules, clock) => ({
      ...rules,
      acceptsConnections: () => clock.now() % (6 * 60 * MINUTE_MS) > MINUTE_MS / 2,
    }),
  },
  {
    id: 'blocks-cannot-be-read',
    why: 'the user of a machine need not be able to read raw blocks',
    behave: (rules) => ({ ...rules, blocksBefore: () => undefined }),
  },
  {
    id: 'greets-at-login',
    why: 'what a login prints before a command belongs to the image',
    behave: (rules) => ({ ...rules, greeting: ({ id }) => `Welcome to ${id}.\n` }),
  },
  {
    id: 'one-create-a-minute',
    why: 'a rate limit of creates',
    behave(rules, clock) {
      let last = Number.NEGATIVE_INFINITY;
      return {
        ...rules,
        isAuthorized(request, credential) {
          const isGood = rules.isAuthorized(request, credential);
          if (!isGood || request.route !== CREATE) return isGood;
          if (clock.now() - last < MINUTE_MS)
            throw new ApiError(429, 'too_many_requests', 'One create a minute.');
          last = clock.now();
          return isGood;
        },
      };
    },
  },
];
