import { marketVariations } from './capacity/market.variations.ts';
import { conversationVariations } from './conventions/conversation.variations.ts';
import { lifeVariations } from './instances/life.variations.ts';
import type { Variation } from './mutant.ts';
import { storageVariations } from './volumes/storage.variations.ts';

/** The usual race is for an offer with a GPU. */
const cpuRace = { race: { offer: 'cpu-spot', units: 16 } };

const times: readonly Variation[] = [
  {
    id: 'instant',
    why: 'no transition has a least duration',
    options: { bootMs: 0, stopMs: 0, startMs: 0, destroyMs: 0 },
  },
  {
    id: 'slow',
    why: 'a machine has ten minutes to be ONLINE, and no other transition has a limit',
    options: { bootMs: 560_000, stopMs: 90_000, startMs: 240_000, destroyMs: 120_000 },
    warns: ['INS-READY-002'],
  },
  {
    id: 'instant-boot',
    why: 'only the 201 has to say PROVISIONING',
    options: { bootMs: 0 },
  },
  {
    id: 'instant-destroy',
    why: 'DELETE: destruction initiated or completed',
    options: { destroyMs: 0 },
  },
  {
    id: 'slow-volumes',
    why: 'a volume may be CREATING for a while',
    options: { volumeCreateMs: 15_000 },
  },
  {
    id: 'asynchronous-detach',
    why: 'attachment records can linger after a detach',
    options: { detachMs: 12_000 },
  },
];

const endings: readonly Variation[] = [
  {
    id: 'destroyed-is-shown',
    why: 'DESTROYED is a status that GET and the list may show before the 404',
    options: { destroyedShownMs: 60_000 },
  },
  {
    id: 'delete-answers-destroyed',
    why: 'DELETE of a destroyed instance answers 404 or a terminal DESTROYED',
    options: { deleteOfDestroyed: 'DESTROYED' },
  },
  {
    id: 'destroyed-is-shown-and-answered',
    why: 'the two together',
    options: { destroyedShownMs: 60_000, deleteOfDestroyed: 'DESTROYED' },
  },
  {
    id: 'instant-and-destroyed-is-shown',
    why: 'DELETE: destruction completed, and shown',
    options: { destroyMs: 0, destroyedShownMs: 60_000, deleteOfDestroyed: 'DESTROYED' },
  },
  {
    id: 'no-resume',
    why: 'a platform that cannot resume answers start with 409',
    options: { resume: false },
  },
];

const tiers: readonly Variation[] = [
  {
    id: 'no-volumes',
    why: 'the storage tier is optional',
    options: { volumes: false },
  },
  {
    id: 'no-volume-location',
    why: 'the storage tier is optional: a provider that sells no volumes may list no location',
    behave: (rules) => ({ ...rules, isLocationListed: () => false }),
  },
  {
    id: 'token-for-an-api-key',
    why: 'POST /auth/token is optional',
    options: { token: 'api_key' },
  },
  {
    id: 'token-for-a-login',
    why: 'which credentials POST /auth/token takes is not shown',
    options: { token: 'password' },
  },
  {
    id: 'tokens-only',
    why: 'a provider may require short-lived tokens',
    options: { token: 'api_key', staticKeys: false, tokenLifetimeS: 600 },
  },
  {
    id: 'logins-only',
    why: 'which of api_key, username and password POST /auth/token takes is not shown',
    options: { token: 'password', staticKeys: false, tokenLifetimeS: 600 },
    signsInWith: 'login',
  },
  {
    id: 'logins-beside-keys',
    why: 'a token may be had for a login while the key is good as it is',
    options: { token: 'password' },
    signsInWith: 'both',
  },
  {
    id: 'cold-attach',
    why: 'a stop-attach-start cycle may be needed to attach',
    options: { attach: 'cold' },
  },
  {
    id: 'cold-attach-at-once',
    why: 'the cycle may be over before the answer',
    options: { attach: 'cold', stopMs: 0, startMs: 0 },
  },
  {
    id: 'no-inline-volumes',
    why: 'volume_ids of a create may be ignored',
    options: { inlineVolumes: 'ignored' },
  },
];

const nullsFor = (fields: string): Record<string, null> =>
  Object.fromEntries(fields.split(' ').map((field) => [field, null]));

const NO_OFFER = nullsFor(
  'description gpu_count gpu_type gpu_memory_gb spot_price_per_hour os_options maintenance extras',
);
const NO_INSTANCE = nullsFor(
  'name public_ip private_ip ssh_port ssh_username port_forwards vcpus memory_gb storage_gb gpu_count gpu_type image price_per_hour error',
);
const NO_VOLUME = nullsFor('type price_per_hour created_at');

const shapes: readonly Variation[] = [
  {
    id: 'direct-network',
    why: 'port_forwards are for NAT',
    options: { network: 'direct' },
  },
  {
    id: 'required-fields-only',
    why: 'optional fields may be left out',
    options: { optionalFields: false },
  },
  {
    id: 'nulls',
    why: 'O: has no word on null, which many frameworks write where there is nothing',
    warns: ['CFG-NULL-001', 'INS-NULL-001', 'VOL-NULL-001'],
    behave: (rules) => ({
      ...rules,
      errorBody: (code, message, details) => ({ error: { code, message, details: details ?? null } }),
      showOffer: (offer, shown, list) => ({ ...NO_OFFER, ...rules.showOffer(offer, shown, list) }),
      showInstance: (instance, shown, request) => ({
        ...NO_INSTANCE,
        ...rules.showInstance(instance, shown, request),
      }),
      showVolume: (volume, shown, request) => ({ ...rules.showVolume(volume, shown, request), ...NO_VOLUME }),
      showLocation: (location, shown) => ({
        ...rules.showLocation(location, shown),
        types: null,
        country_code: null,
      }),
    }),
  },
  {
    id: 'extra-fields',
    why: 'nothing forbids fields beside those of O:',
    options: { extraFields: true },
  },
  {
    id: 'duplicate-names',
    why: 'names need not be unique',
    options: { dedupe: 'allow' },
  },
  {
    id: 'no-gpus',
    why: 'gpu_count and its like are optional',
    options: { gpus: false },
    run: cpuRace,
  },
  {
    id: 'nothing-sold-out',
    why: 'no offer has to be unavailable',
    options: { soldOutOffer: false },
  },
  {
    id: 'whole-seconds',
    why: 'RFC 3339 needs no fraction of a second',
    behave: (rules) => ({
      ...rules,
      timestamp: (wallMs) => `${new Date(wallMs).toISOString().slice(0, 19)}Z`,
    }),
  },
];

const combinations: readonly Variation[] = [
  {
    id: 'bare-minimum',
    why: 'compute alone, in as few words as O: allows',
    options: { volumes: false, optionalFields: false, resume: false, gpus: false, soldOutOffer: false },
    run: cpuRace,
  },
  {
    id: 'everything-and-more',
    why: 'all tiers, with fields beside those of O:',
    options: { token: 'api_key', extraFields: true, destroyedShownMs: 60_000, detachMs: 12_000 },
  },
  {
    id: 'instant-and-terse',
    why: 'no waiting and few words',
    options: { bootMs: 0, stopMs: 0, startMs: 0, destroyMs: 0, optionalFields: false },
  },
  {
    id: 'cold-attach-and-asynchronous-detach',
    why: 'the slow ways of a storage tier together',
    options: { attach: 'cold', detachMs: 12_000, volumeCreateMs: 15_000, inlineVolumes: 'ignored' },
  },
];

/** Every lawful variation that the suite is tested against. */
export const variations: readonly Variation[] = [
  { id: 'reference', why: 'the reference as it is' },
  ...times,
  ...endings,
  ...tiers,
  ...shapes,
  ...conversationVariations,
  ...lifeVariations,
  ...marketVariations,
  ...storageVariations,
  ...combinations,
];
