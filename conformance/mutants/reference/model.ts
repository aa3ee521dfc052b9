import type { Disk } from './guest.ts';
import type { SshEndpoint } from './ssh-endpoint.ts';

/** Options of a lawful orchestrator. Times are virtual milliseconds; 0: immediately. */
export interface ReferenceOptions {
  baseUrl: string;
  /** Keys of one account, all valid at once. */
  apiKeys: readonly string[];
  /** Keys of another account, which has no instances and may buy none. */
  otherAccountKeys: readonly string[];
  bootMs: number;
  stopMs: number;
  startMs: number;
  destroyMs: number;
  /** How long a destroyed instance is still shown as DESTROYED before it answers 404. */
  destroyedShownMs: number;
  deleteOfDestroyed: '404' | 'DESTROYED';
  /** `direct` shows no port_forwards. */
  network: 'nat' | 'direct';
  volumes: boolean;
  volumeCreateMs: number;
  /** How long an attachment is still listed after its detach. */
  detachMs: number;
  /** `cold` stops and starts a running instance to attach to it. */
  attach: 'hot' | 'cold';
  /** `cold` stops and starts a running instance to detach from it. */
  detach: 'hot' | 'cold';
  inlineVolumes: 'honoured' | 'ignored';
  /** The credential that POST /auth/token accepts. `absent`: the endpoint does not exist. */
  token: 'absent' | 'api_key' | 'password' | 'both';
  login: { username: string; password: string };
  tokenLifetimeS: number;
  /** Whether an API key is itself a bearer credential. Otherwise it must be exchanged for a token. */
  staticKeys: boolean;
  resume: boolean;
  /** False: omits optional fields of O: that SSH does not need. */
  optionalFields: boolean;
  /** Adds fields that O: does not name to every object. */
  extraFields: boolean;
  gpus: boolean;
  soldOutOffer: boolean;
  /** How many further regions the sold-out offer names. */
  moreRegions: number;
  dedupe: 'suffix' | 'allow';
}

export const defaultOptions: ReferenceOptions = {
  baseUrl: 'https://reference.test/v1',
  apiKeys: ['reference-key-one', 'reference-key-two'],
  otherAccountKeys: ['reference-key-of-another-account'],
  bootMs: 40_000,
  stopMs: 5_000,
  startMs: 20_000,
  destroyMs: 8_000,
  destroyedShownMs: 0,
  deleteOfDestroyed: '404',
  network: 'nat',
  volumes: true,
  volumeCreateMs: 0,
  detachMs: 0,
  attach: 'hot',
  detach: 'hot',
  inlineVolumes: 'honoured',
  token: 'absent',
  login: { username: 'marketplace', password: 'correct horse' },
  tokenLifetimeS: 3_600,
  staticKeys: true,
  resume: true,
  optionalFields: true,
  extraFields: false,
  gpus: true,
  soldOutOffer: true,
  moreRegions: 0,
  dedupe: 'suffix',
};

export type InstanceType = 'SPOT' | 'DEDICATED' | 'BARE_METAL' | 'CLUSTER';

export interface Offer {
  id: string;
  name: string;
  instanceType: InstanceType;
  vcpus: number;
  memoryGb: number;
  storageGb: number;
  gpu?: { count: number; type: string; memoryGb: number };
  pricePerHour: number;
  spotPricePerHour?: number;
  images: readonly string[];
  supportsCloudInit: boolean;
  /** Free units by region. The keys are the offer's regions. */
  free: Map<string, number>;
}

export type InstanceStatus =
  | 'PROVISIONING'
  | 'ONLINE'
  | 'STOPPING'
  | 'STOPPED'
  | 'OFFLINE'
  | 'DESTROYING'
  | 'DESTROYED'
  | 'ERROR';

export interface Instance {
  id: string;
  name: string;
  offer: Offer;
  region: string;
  /** USD per hour when it was created. */
  bookedPrice: number;
  status: InstanceStatus;
  image: string;
  storageGb: number;
  /** The second words of the injected keys' lines, in base64. */
  keys: readonly string[];
  disk: Disk;
  endpoint: SshEndpoint;
  error?: string;
  /** A start is under way. The status stays STOPPED until SSH listens. */
  isStarting: boolean;
  createdAtMs: number;
  updatedAtMs: number;
  /** When it became DESTROYED, on the clock's `now()`. */
  destroyedAtMs?: number;
  /** Cancels the pending step. */
  cancel: () => void;
}

export type VolumeStatus =
  | 'CREATING'
  | 'AVAILABLE'
  | 'ATTACHING'
  | 'ATTACHED'
  | 'DETACHING'
  | 'DELETING'
  | 'ERROR';

export interface Attachment {
  state: 'attaching' | 'attached' | 'detaching';
  /** Whether the instance is STOPPED. */
  isOff?: boolean;
}

export interface Volume {
  id: string;
  name: string;
  sizeGb: number;
  region: string;
  type: string;
  isCreated: boolean;
  isDeleted: boolean;
  /** By instance id. */
  attachments: Map<string, Attachment>;
  createdAtMs: number;
}

export interface VolumeLocation {
  id: string;
  name: string;
  types: readonly string[];
  countryCode: string;
}
