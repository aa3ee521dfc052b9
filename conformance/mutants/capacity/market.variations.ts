import type { Variation } from '../mutant.ts';
import { ApiError } from '../reference/errors.ts';
import type { ReferenceRequest } from '../reference/exchange.ts';
import type { Instance } from '../reference/model.ts';
import type { Rules } from '../reference/rules.ts';
import { SSH_USERNAME } from '../reference/ssh-endpoint.ts';

const CREATE = 'POST /instances';
const SOLD_OUT = 'metal-epyc';
const RACED = 'gpu-l4';

interface CreateBody {
  name?: string;
  configuration_id?: string;
}

/**
 * Calls `refuse` for each valid create, with the number of creates of that offer. An error that it throws becomes the
 * answer.
 */
function onValidCreates(refuse: (body: CreateBody, count: number) => void) {
  return (rules: Rules): Rules => {
    const counts = new Map<string, number>();
    return {
      ...rules,
      validateCreate(given, context) {
        const issues = rules.validateCreate(given, context);
        const body = (given ?? {}) as CreateBody;
        if (issues.length > 0 || !body.name?.startsWith('berth-conf-')) return issues;
        const offer = body.configuration_id ?? '';
        counts.set(offer, (counts.get(offer) ?? 0) + 1);
        refuse(body, counts.get(offer) ?? 0);
        return issues;
      },
    };
  };
}

const soldOut = () =>
  new ApiError(409, 'capacity_unavailable', 'The requested capacity is not available now.');
const beyondQuota = () => new ApiError(409, 'quota_exceeded', 'The account has as much as it may have.');
const limited = () => new ApiError(429, 'too_many_requests', 'Not so fast.');

/** All offers and regions share one unit, which is listed some time after it was given back. */
function singleUnit(relistedAfterMs: number): NonNullable<Variation['behave']> {
  return (rules, clock) => {
    let free = true;
    let listedFrom = 0;
    return {
      ...rules,
      isAvailable: (offer, region) => free && clock.now() >= listedFrom && rules.isAvailable(offer, region),
      claimCapacity(offer, region) {
        const isClaimed = free && rules.claimCapacity(offer, region);
        if (isClaimed) free = false;
        return isClaimed;
      },
      releaseCapacity(offer, region) {
        free = true;
        listedFrom = clock.now() + relistedAfterMs;
        rules.releaseCapacity(offer, region);
      },
    };
  };
}

/** A rate limit of one request per interval, by kind of request. */
function limiting(
  everyMs: number,
  isLimited: (request: ReferenceRequest) => boolean,
): NonNullable<Variation['behave']> {
  return (rules, clock) => {
    let last = Number.NEGATIVE_INFINITY;
    return {
      ...rules,
      isAuthorized(request, credential) {
        const isGood = rules.isAuthorized(request, credential);
        if (!isGood || !isLimited(request)) return isGood;
        if (clock.now() - last < everyMs) throw limited();
        last = clock.now();
        return isGood;
      },
    };
  };
}

/** Adds another instance of the account, of the raced offer. */
const others: NonNullable<Variation['behave']> = (rules) => ({
  ...rules,
  answer(request, answer) {
    const usual = rules.answer(request, answer);
    if (request.route !== 'GET /instances' || request.query.size > 0 || usual.status !== 200) return usual;
    const at = '2026-01-01T00:00:00Z';
    const held = {
      id: 'i-held',
      name: 'production',
      configuration_id: RACED,
      region: 'eu-north',
      status: 'ONLINE',
      public_ip: '127.0.0.1',
      ssh_port: 22,
      created_at: at,
      updated_at: at,
    };
    const { instances } = usual.json as { instances: object[] };
    return { ...usual, json: { instances: [...instances, held] } };
  },
});

/** Adds an instance that another client of the account deploys after the run's first create. */
const another: NonNullable<Variation['behave']> = (rules, clock) => {
  const usual = others(rules, clock);
  let hasCreated = false;
  return {
    ...usual,
    answer(request, answer) {
      hasCreated ||= request.route === CREATE && answer.status === 201;
      return hasCreated ? usual.answer(request, answer) : rules.answer(request, answer);
    },
  };
};

const restarts: readonly Variation[] = [
  {
    id: 'restarts-for-half-a-minute',
    why: 'a server may be restarted: what it does not accept it has not refused',
    behave: (rules, clock) => ({
      ...rules,
      acceptsConnections: () => clock.now() < 60_000 || clock.now() > 90_000,
    }),
  },
  {
    id: 'account-holds-a-unit',
    why: 'of the units that there are the account may hold some: 409 is about free ones',
    run: { race: { offer: RACED, units: 3 } },
    behave: others,
  },
  {
    id: 'another-client-deploys-meanwhile',
    why: 'an account may have several clients: an instance that the run cannot explain is named, and left alone',
    run: { race: { offer: RACED, units: 3 } },
    behave: another,
    warns: ['INS-ONE-002'],
  },
];

const limits: readonly Variation[] = [
  {
    id: 'one-create-in-ten-seconds',
    why: 'a rate limit has to accommodate polls and catalogue refreshes, and nothing says what it answers with',
    behave: limiting(10_000, ({ route }) => route === CREATE),
  },
  {
    id: 'one-read-at-a-time',
    why: 'a rate limit has to accommodate one poll of each instance in ten seconds',
    behave: limiting(10, ({ route }) => route === 'GET /instances/{instanceId}'),
  },
  {
    id: 'one-delete-a-second',
    why: 'a rate limit has to accommodate polls and catalogue refreshes alone',
    behave: limiting(1000, ({ method, path }) => method === 'DELETE' && path.startsWith('/instances/')),
  },
];

/** Other customers who create and destroy resources during the run. */
const customers: readonly Variation[] = [
  {
    id: 'a-single-unit',
    why: 'a provider may have one machine; what needs a second runs after the first is gone',
    run: { race: { offer: RACED, units: 1 } },
    behave: singleUnit(0),
  },
  {
    id: 'a-single-unit-that-is-listed-late',
    why: 'a unit that becomes free is listed again within some seconds',
    run: { race: { offer: RACED, units: 1 } },
    behave: singleUnit(30_000),
  },
  {
    id: 'a-customer-was-quicker',
    why: 'capacity may go between the read and the create, and come back',
    behave: onValidCreates(({ configuration_id }, count) => {
      if (configuration_id === 'cpu-small' && [1, 3, 6].includes(count)) throw soldOut();
    }),
  },
  {
    id: 'quota-of-the-account',
    why: '409 is for more than lost capacity; a quota says nothing of the stock',
    behave: onValidCreates(({ configuration_id }, count) => {
      if (configuration_id === 'cpu-small' && [1, 3, 6].includes(count)) throw beyondQuota();
    }),
  },
  {
    id: 'freed-and-sold-again',
    why: 'what is sold out may become free just then',
    behave(rules) {
      let sold = 0;
      return {
        ...rules,
        claimCapacity: (offer, region) =>
          offer.id === SOLD_OUT ? sold++ === 0 : rules.claimCapacity(offer, region),
        releaseCapacity: (offer, region) =>
          offer.id === SOLD_OUT ? undefined : rules.releaseCapacity(offer, region),
      };
    },
  },
  {
    id: 'freed-after-a-refusal',
    why: 'another customer’s unit may become free right after a 409',
    behave(rules) {
      let isFreed = false;
      return {
        ...rules,
        claimCapacity(offer, region) {
          const isClaimed = rules.claimCapacity(offer, region);
          if (offer.id !== RACED || isClaimed || isFreed) return isClaimed;
          isFreed = true;
          rules.releaseCapacity(offer, region);
          return false;
        },
      };
    },
  },
  {
    id: 'availability-two-seconds-late',
    why: 'within seconds is what a status may take, and a count of units no less',
    behave(rules, clock) {
      const sold = new Map<string, number>();
      const keyOf = (id: string, region: string): string => `${id} ${region}`;
      return {
        ...rules,
        claimCapacity(offer, region) {
          const isClaimed = rules.claimCapacity(offer, region);
          if (isClaimed && offer.free.get(region) === 0) sold.set(keyOf(offer.id, region), clock.now());
          return isClaimed;
        },
        isAvailable(offer, region) {
          const soldAt = sold.get(keyOf(offer.id, region)) ?? Number.NEGATIVE_INFINITY;
          return rules.isAvailable(offer, region) || clock.now() - soldAt < 2000;
        },
      };
    },
  },
];

const machines: readonly Variation[] = [
  {
    id: 'one-machine-of-a-race-fails',
    why: 'ERROR: a non-recoverable provisioning failure, with its text.',
    behave: (rules) => {
      let failed: string | undefined;
      return {
        ...rules,
        statusAfter(instance, next) {
          if (instance.offer.id === RACED && next === 'ONLINE') failed ??= instance.id;
          return failed === instance.id && next === 'ONLINE' ? 'ERROR' : rules.statusAfter(instance, next);
        },
      };
    },
  },
  {
    id: 'disks-and-volumes-of-a-create-ignored',
    why: 'root_disk_size_gb is for where it is supported, and volume_ids may be ignored',
    warns: ['NEG-TYPE-002'],
    behave: (rules) => ({
      ...rules,
      readBody(request) {
        const body = rules.readBody(request);
        if (request.route !== CREATE || typeof body !== 'object' || body === null) return body;
        const { root_disk_size_gb: _, volume_ids: __, ...rest } = body as Record<string, unknown>;
        return rest;
      },
    }),
  },
  {
    id: 'images-with-their-build',
    why: 'nothing says how the deployed image is spelled',
    behave: (rules) => ({
      ...rules,
      showInstance(instance, shown, request) {
        const usual = rules.showInstance(instance, shown, request);
        return usual['image'] === undefined ? usual : { ...usual, image: `${usual['image']}-20260101-amd64` };
      },
    }),
  },
  {
    id: 'windows-is-the-last-image',
    why: 'an offer may have images without a shell',
    behave: (rules) => ({
      ...rules,
      showOffer(offer, given, list) {
        const shown = rules.showOffer(offer, given, list);
        return { ...shown, os_options: [...offer.images, 'Windows-Server-2025'] };
      },
    }),
  },
  {
    id: 'ssh-by-a-gateway',
    why: 'machines behind one address and port may be told apart by their user',
    behave(rules) {
      const users = new Map<string, Instance>();
      let gateway: Instance | undefined;
      return {
        ...rules,
        showInstance(instance, given, request) {
          const shown = rules.showInstance(instance, given, request);
          if (instance.offer.id !== RACED || shown['ssh_port'] === undefined) return shown;
          gateway ??= instance;
          const user = `vm-${instance.id}`;
          users.set(user, instance);
          return { ...shown, ssh_port: gateway.endpoint.port, ssh_username: user };
        },
        mayLogin(instance, attempt) {
          const target = users.get(attempt.username);
          return target === undefined
            ? rules.mayLogin(instance, attempt)
            : rules.mayLogin(target, { ...attempt, username: SSH_USERNAME });
        },
      };
    },
  },
];

/** Lawful variations in buying: limits, other customers, images, and ways to reach a machine. */
export const marketVariations: readonly Variation[] = [...restarts, ...limits, ...customers, ...machines];
