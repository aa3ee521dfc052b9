import type { Issue } from './errors.ts';
import type { ReferenceRequest, WireAnswer } from './exchange.ts';
import type { Disk, Hardware } from './guest.ts';
import type { Instance, InstanceStatus, Offer, Volume, VolumeLocation, VolumeStatus } from './model.ts';
import type { SshAttempt } from './ssh-endpoint.ts';
import type { RequestContext } from './validate.ts';

/** The result of checking a bearer credential. */
export type Credential = 'none' | 'unknown' | 'key' | 'other account' | 'token' | 'expired';

type Shown = Record<string, unknown>;

/** The state that outlives a restart. */
export interface Kept {
  instances: Map<string, Instance>;
  volumes: Map<string, Volume>;
}

/** O: Conventions, Errors, Authentication. */
interface ConversationRules {
  /** Whether the server is up. */
  acceptsConnections(): boolean;
  /** What a restart of the server leaves of its state; may change it. */
  afterRestart(state: Kept): void;
  roundTripMs(): number;
  /** The server's delay in addition to the round trip. */
  answerDelayMs(request: ReferenceRequest): number;
  /** The credential of an Authorization header. */
  bearerOf(authorization: string | undefined): string | undefined;
  needsCredential(request: ReferenceRequest): boolean;
  isAuthorized(request: ReferenceRequest, credential: Credential): boolean;
  /** Whether the caller has another account, and sees none of this one's instances and volumes. */
  isStranger(request: ReferenceRequest, credential: Credential): boolean;
  /** The body as JSON. @throws {SyntaxError} */
  readBody(request: ReferenceRequest): unknown;
  errorBody(code: string, message: string, details: Shown | undefined): Shown;
  timestamp(wallMs: number): string;
  /** Can change every answer last. */
  answer(request: ReferenceRequest, answer: WireAnswer): WireAnswer;
  /** Whether the answer is sent, or the connection is closed without one. */
  isSent(request: ReferenceRequest, answer: WireAnswer): boolean;

  validateToken(body: unknown): Issue[];
  areCredentialsGood(body: Shown): boolean;
  tokenLifetimeS(): number;
  showToken(shown: Shown): Shown;
}

/** O: Availability contract. */
interface CatalogRules {
  validateType(wanted: string | null): Issue[];
  matchesType(offer: Offer, wanted: string | null): boolean;
  /** `region` as a filter of /availability and /instances. */
  matchesRegion(regions: readonly string[], wanted: string | null): boolean;
  isAvailable(offer: Offer, region: string): boolean;
  isInConfigurations(offer: Offer): boolean;
  isInAvailability(offer: Offer, deployableRegions: readonly string[]): boolean;
  regionsShown(offer: Offer, deployableRegions: readonly string[], list: OfferList): readonly string[];
  /** Takes one unit. False: none is free. */
  claimCapacity(offer: Offer, region: string): boolean;
  releaseCapacity(offer: Offer, region: string): void;
  showOffer(offer: Offer, shown: Shown, list: OfferList): Shown;
}

export type OfferList = 'configurations' | 'availability';

/** O: Instance status, Instances. */
interface InstanceRules {
  validateCreate(body: unknown, context: RequestContext): Issue[];
  /** The names of further instances that a create makes. */
  namesOfTwins(asked: Shown): readonly string[];
  uniqueName(wanted: string, taken: readonly string[]): string;
  keysToInject(keys: readonly string[]): readonly string[];
  imageToDeploy(offer: Offer, wanted: string | undefined): string;
  storageGb(offer: Offer, wanted: number | undefined): number;
  /** The words on the raw blocks of a new machine's disk. Undefined: the user of the machine may not read them. */
  blocksBefore(offer: Offer, region: string): ReadonlySet<string> | undefined;
  /** The files of cloud_init, by path. */
  filesAtFirstBoot(files: ReadonlyMap<string, string>): ReadonlyMap<string, string>;
  /** `mode:user:group`, by path. */
  ownersAtFirstBoot(owners: ReadonlyMap<string, string>): ReadonlyMap<string, string>;
  commandsAtFirstBoot(commands: readonly string[]): readonly string[];
  attachesInline(volumeIds: readonly string[]): readonly string[];

  bootMs(instance: Instance): number;
  stopMs(instance: Instance): number;
  startMs(instance: Instance): number;
  destroyMs(instance: Instance): number;
  /** The status that a transition actually leads to. ERROR takes `errorText`. */
  statusAfter(instance: Instance, next: InstanceStatus): InstanceStatus;
  errorText(instance: Instance): string | undefined;
  updatedAt(instance: Instance, wallMs: number): number;
  sshListens(instance: Instance, status: InstanceStatus): boolean;
  mayLogin(instance: Instance, attempt: SshAttempt): boolean;
  /** What a login prints before its command does. */
  greeting(instance: Instance): string;
  diskAfterStart(instance: Instance, disk: Disk): Disk;
  hardware(instance: Instance): Hardware;
  /** The port to listen on after it was `port`; 0 is any. */
  portAfterStart(instance: Instance, port: number): number;

  mayStop(instance: Instance): boolean;
  mayStart(instance: Instance): boolean;
  /** Whether stop, start and delete have the effect that they report. */
  takesEffect(instance: Instance, operation: 'stop' | 'start' | 'delete'): boolean;
  /** Whether a destroyed instance is no longer shown. */
  isGone(instance: Instance): boolean;
  isListed(instance: Instance): boolean;
  deleteOfDestroyed(instance: Instance): '404' | 'DESTROYED';
  statusShown(instance: Instance): InstanceStatus;
  pricePerHour(instance: Instance): number;
  showInstance(instance: Instance, shown: Shown, request: ReferenceRequest): Shown;
}

/** O: Volume status, Volumes. */
interface VolumeRules {
  validateVolume(body: unknown, context: RequestContext): Issue[];
  validateAttach(body: unknown): Issue[];
  validateDetach(body: unknown): Issue[];
  volumeCreateMs(volume: Volume): number;
  detachMs(volume: Volume, instanceId: string): number;
  mayAttach(volume: Volume, instance: Instance): boolean;
  /** Whether the instance must be stopped for it. */
  needsCycle(volume: Volume, instance: Instance): boolean;
  instancesToAttach(volume: Volume, asked: readonly string[]): readonly string[];
  instancesToDetach(volume: Volume, asked: readonly string[] | undefined): readonly string[];
  mayDelete(volume: Volume): boolean;
  isVolumeGone(volume: Volume): boolean;
  /** Whether the end of the instance ends its attachments. */
  endsAttachments(instance: Instance, volume: Volume): boolean;
  volumeStatus(volume: Volume): VolumeStatus;
  attachedInstanceIds(volume: Volume): readonly string[];
  showVolume(volume: Volume, shown: Shown, request: ReferenceRequest): Shown;
  isLocationListed(location: VolumeLocation): boolean;
  showLocation(location: VolumeLocation, shown: Shown): Shown;
}

/** The decisions of O:, one small function each. A mutant replaces one. */
export interface Rules extends ConversationRules, CatalogRules, InstanceRules, VolumeRules {}
