import type { AutoClock } from './auto-clock.ts';
import type { Issue } from './errors.ts';
import type { Attachment, ReferenceOptions, Volume, VolumeStatus } from './model.ts';
import type { Rules } from './rules.ts';
import { SSH_USERNAME } from './ssh-endpoint.ts';
import {
  instanceTypes,
  validateAttach,
  validateCreate,
  validateDetach,
  validateToken,
  validateVolume,
} from './validate.ts';

/** The rules of O:, with `options` for what O: leaves open. */
export function defaultRules(options: ReferenceOptions, clock: AutoClock): Rules {
  return {
    ...conversation(options),
    ...catalog(),
    ...creation(options),
    ...lifecycle(options, clock),
    ...volumes(options),
  };
}

function conversation(options: ReferenceOptions) {
  return {
    acceptsConnections: () => true,
    afterRestart: () => {},
    roundTripMs: () => 20,
    answerDelayMs: () => 5,
    bearerOf: (authorization) => /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1],
    needsCredential: ({ method, path }) => method !== 'POST' || path !== '/auth/token',
    isAuthorized: (_request, credential) =>
      credential === 'token' || (['key', 'other account'].includes(credential) && options.staticKeys),
    isStranger: (_request, credential) => credential === 'other account',
    readBody: ({ text }) => JSON.parse(text),
    errorBody: (code, message, details) => ({
      error: { code, message, ...(details !== undefined && options.optionalFields && { details }) },
    }),
    timestamp: (wallMs) => new Date(wallMs).toISOString(),
    answer: (_request, answer) => answer,
    isSent: () => true,

    validateToken,
    areCredentialsGood: (body) =>
      (options.token !== 'password' && options.apiKeys.some((key) => key === body['api_key'])) ||
      (options.token !== 'api_key' &&
        body['username'] === options.login.username &&
        body['password'] === options.login.password),
    tokenLifetimeS: () => options.tokenLifetimeS,
    showToken: (shown) => shown,
  } satisfies Partial<Rules>;
}

function catalog() {
  return {
    validateType: (wanted): Issue[] =>
      wanted === null || instanceTypes.some((type) => type === wanted)
        ? []
        : [{ path: 'instance_type', message: `expected one of ${instanceTypes.join(', ')}` }],
    matchesType: (offer, wanted) => wanted === null || offer.instanceType === wanted,
    matchesRegion: (regions, wanted) => wanted === null || regions.includes(wanted),
    isAvailable: (offer, region) => (offer.free.get(region) ?? 0) > 0,
    isInConfigurations: () => true,
    isInAvailability: (_offer, deployableRegions) => deployableRegions.length > 0,
    regionsShown: (offer, deployableRegions, list) =>
      list === 'availability' ? deployableRegions : [...offer.free.keys()],
    claimCapacity(offer, region) {
      const free = offer.free.get(region) ?? 0;
      if (free > 0) offer.free.set(region, free - 1);
      return free > 0;
    },
    releaseCapacity: (offer, region) => void offer.free.set(region, (offer.free.get(region) ?? 0) + 1),
    showOffer: (_offer, shown) => shown,
  } satisfies Partial<Rules>;
}

function creation(options: ReferenceOptions) {
  return {
    validateCreate,
    namesOfTwins: () => [],
    uniqueName(wanted, taken) {
      let name = wanted;
      for (let count = 2; options.dedupe === 'suffix' && taken.includes(name); count++)
        name = `${wanted}-${count}`;
      return name;
    },
    keysToInject: (keys) => keys,
    imageToDeploy: (offer, wanted) => wanted ?? offer.images[0] ?? 'default',
    storageGb: (offer, wanted) => wanted ?? offer.storageGb,
    blocksBefore: () => new Set<string>(),
    filesAtFirstBoot: (files) => files,
    ownersAtFirstBoot: (owners) => owners,
    commandsAtFirstBoot: (commands) => commands,
    attachesInline: (volumeIds) => (options.inlineVolumes === 'honoured' ? volumeIds : []),
  } satisfies Partial<Rules>;
}

function lifecycle(options: ReferenceOptions, clock: AutoClock) {
  return {
    bootMs: () => options.bootMs,
    stopMs: () => options.stopMs,
    startMs: () => options.startMs,
    destroyMs: () => options.destroyMs,
    statusAfter: (_instance, next) => next,
    errorText: () => 'The machine failed.',
    updatedAt: (instance, wallMs) => Math.max(wallMs, instance.updatedAtMs + 1),
    sshListens: (_instance, status) => status === 'ONLINE',
    mayLogin: (instance, { username, method, key }) =>
      method === 'publickey' && username === SSH_USERNAME && key !== undefined && instance.keys.includes(key),
    greeting: () => '',
    diskAfterStart: (_instance, disk) => disk,
    hardware: ({ offer, storageGb }) => ({
      cores: offer.vcpus,
      memoryGb: offer.memoryGb,
      storageGb,
      gpuCount: offer.gpu?.count,
    }),
    portAfterStart: (_instance, port) => port,

    mayStop: ({ status }) => status === 'ONLINE',
    mayStart: ({ status }) => status === 'STOPPED' && options.resume,
    takesEffect: () => true,
    isGone: ({ destroyedAtMs }) =>
      destroyedAtMs !== undefined && clock.now() - destroyedAtMs >= options.destroyedShownMs,
    isListed: () => true,
    deleteOfDestroyed: () => options.deleteOfDestroyed,
    statusShown: ({ status }) => status,
    pricePerHour: ({ offer }) =>
      offer.instanceType === 'SPOT' ? (offer.spotPricePerHour ?? offer.pricePerHour) : offer.pricePerHour,
    showInstance: (_instance, shown) => shown,
  } satisfies Partial<Rules>;
}

function volumes(options: ReferenceOptions) {
  return {
    validateVolume,
    validateAttach,
    validateDetach,
    volumeCreateMs: () => options.volumeCreateMs,
    detachMs: () => options.detachMs,
    mayAttach: (volume, { status, region }) =>
      region === volume.region && ['PROVISIONING', 'ONLINE', 'STOPPING', 'STOPPED'].includes(status),
    needsCycle: () => options.attach === 'cold',
    instancesToAttach: (_volume, asked) => asked,
    instancesToDetach: (volume, asked) => asked ?? [...volume.attachments.keys()],
    // A detach that is still under way is forced.
    mayDelete: (volume) => statesOf(volume).every((state) => state === 'detaching'),
    isVolumeGone: ({ isDeleted }) => isDeleted,
    endsAttachments: () => true,
    volumeStatus,
    attachedInstanceIds: ({ attachments }) =>
      [...attachments].filter(([, { state }]) => state !== 'attaching').map(([id]) => id),
    showVolume: (_volume, shown) => shown,
    isLocationListed: () => true,
    showLocation: (_location, shown) => shown,
  } satisfies Partial<Rules>;
}

const statesOf = ({ attachments }: Volume): Attachment['state'][] =>
  [...attachments.values()].map(({ state }) => state);

function volumeStatus(volume: Volume): VolumeStatus {
  const states = statesOf(volume);
  if (volume.isDeleted) return 'DELETING';
  if (!volume.isCreated) return 'CREATING';
  if (states.includes('detaching')) return 'DETACHING';
  if (states.includes('attaching')) return 'ATTACHING';
  return states.length > 0 ? 'ATTACHED' : 'AVAILABLE';
}
