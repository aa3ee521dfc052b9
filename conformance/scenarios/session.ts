import { instancePath } from '../contract/paths.ts';
import type { Call } from '../http/call.ts';
import type { Clock } from '../http/clock.ts';
import type { SignIn } from '../http/sign-in.ts';
import type { TargetClient } from '../http/target-client.ts';
import type { Entry, Ledger } from '../resources/ledger.ts';
import type { CreateResult, ResourceRequest, Resources } from '../resources/resources.ts';
import { INJECTED_KEYS, type KeyRing } from '../ssh/key-ring.ts';
import type { KeyType, SshClient, SshLogin } from '../ssh/ssh-client.ts';
import { type JsonObject, numberField, objectsField, stringField } from '../text/json.ts';
import type { Draws } from '../transcript/draws.ts';
import { isPolledRead, successOf } from '../transcript/exchange.ts';
import type {
  Exchange,
  KeyName,
  Level,
  RestartRecord,
  RunSettings,
  SshRecord,
} from '../transcript/records.ts';
import type { Transcript } from '../transcript/transcript.ts';
import { type Awaited, prospectOf } from '../waiting/answers.ts';
import { type KnownReasons, WaitLimiter } from '../waiting/wait-limiter.ts';
import { ListSamples, SAMPLE_STEP } from './list-samples.ts';
import type { Placement } from './placement.ts';
import type { RestartTarget } from './restart/restart-target.ts';

const SSH_TIMEOUT_MS = 20_000;
/** Tried in this order if an instance has no user name. */
const USUAL_USERNAMES = ['root', 'ubuntu', 'debian', 'rocky', 'ec2-user', 'cloud-user'];

/** An instance of the run. */
export interface Instance {
  entry: Entry;
  id: string;
  region: string;
  placement: Placement;
}

export interface SessionParts extends SignIn {
  level: Level;
  settings: RunSettings;
  client: TargetClient;
  clock: Clock;
  draws: Draws;
  ssh: SshClient;
  /** Whether logins to private addresses are allowed. */
  allowPrivate: boolean;
  keys: KeyRing;
  ledger: Ledger;
  resources: Resources;
  transcript: Transcript;
  /** Aborted by Ctrl-C and when the time is up. */
  signal: AbortSignal;
  /** Restarts the target (`--restart-command`). */
  restartTarget?: RestartTarget | undefined;
  /** Called with what the run waits for. */
  onWait: (text: string) => void;
  /** Reasons why waits of the run were given up. */
  knownReasons: KnownReasons;
}

export interface Wait {
  /** In words, e.g. `the instance to be gone`. */
  text: string;
  /** The statuses from which the awaited one can still follow; default: any. */
  onTheWay?: readonly string[];
  /** How long to wait at least, whatever the patience of the run, in milliseconds. */
  atLeastMs?: number;
  /** When the change was requested, on the clock of `now()`. */
  askedAt?: number;
}

/** The interface of scenarios to the target, and their shared state. */
export class Session {
  readonly #parts: SessionParts;
  readonly #samples: ListSamples;
  #firstReadAt = 0;
  readonly #givenUp = new AbortController();
  #logins = 0;
  #volumeUsdPerGb: number | undefined;
  /** The user that could log in, by instance. */
  readonly #usernames = new Map<string, string>();
  /** The offers that the scenario `catalog` read. */
  configurations: readonly JsonObject[] = [];
  availability: readonly JsonObject[] = [];
  /** The volume locations. Undefined if the target has no storage tier. */
  locations: readonly JsonObject[] | undefined;
  /** The instance that most scenarios use, while it exists. */
  primary: Instance | undefined;
  whyNoPrimary: string | undefined;
  /** The last read that showed `primary` ONLINE. Undefined after a step that changed its status. */
  online: JsonObject | undefined;
  /** The last ONLINE endpoint of `primary`, to check whether it still answers. */
  lastOnline: JsonObject | undefined;
  whyNotOnline: string | undefined;
  /** When a read first showed `primary` ONLINE, on the clock of `now()`. */
  onlineSince = 0;
  /** Set while the first instance is observed beside other work: it is then read once a poll interval. */
  isBesideFirst = false;
  /** The scenarios that found no free unit while the run held instances itself, and run once these are gone. */
  readonly postponed = new Set<string>();
  /** A list after the run's last create was searched for instances that the ledger does not know. */
  hasLookedForUnexplained = false;
  /** The instance in a second region. */
  inSecondRegion: Instance | undefined;
  /** Instances whose wait after an attach or a detach was given up. They are read only once from then on. */
  readonly stuck = new Set<string>();

  /** Aborted by Ctrl-C, when the time is up, and by `giveUp`. */
  readonly signal: AbortSignal;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.signal = AbortSignal.any([parts.signal, this.#givenUp.signal]);
    this.#samples = new ListSamples((label) => parts.draws.fraction(label));
  }

  get settings(): RunSettings {
    return this.#parts.settings;
  }

  get level(): Level {
    return this.#parts.level;
  }

  /** Ends everything that is under way, for this reason. */
  giveUp(reason: unknown): void {
    this.#givenUp.abort(reason);
  }

  get client(): TargetClient {
    return this.#parts.client;
  }

  get draws(): Draws {
    return this.#parts.draws;
  }

  get restartTarget(): RestartTarget | undefined {
    return this.#parts.restartTarget;
  }

  get ledger(): Ledger {
    return this.#parts.ledger;
  }

  get signIn(): SignIn {
    return this.#parts;
  }

  /** The public keys for an instance, by its ledger entry. `ofItsOwn`: no other instance has them. */
  publicKeys(entry: number, ofItsOwn: boolean, types: readonly KeyType[] = ['ed25519', 'ed25519']): string[] {
    const { keys } = this.#parts;
    if (ofItsOwn) keys.issue(entry, types);
    // A marketplace injects one key.
    const names = INJECTED_KEYS.slice(0, this.settings.plain === true ? 1 : types.length);
    return names.map((name) => keys.pair(entry, name).publicKey);
  }

  /** The ledger entries of the instances that are gone. */
  get gone(): number[] {
    const gone = this.ledger.entries.filter(({ type, state }) => type === 'instance' && state === 'gone');
    return gone.map(({ n }) => n);
  }

  /** Milliseconds since the run's start. */
  now(): number {
    return this.client.now();
  }

  /** Sleeps; reads the first instance meanwhile, where it is observed beside other work. */
  async sleep(ms: number, signal = this.signal): Promise<void> {
    const { clock } = this.#parts;
    const end = this.now() + ms;
    for (let due = this.#nextReadAt(); due < end; due = this.#nextReadAt()) {
      await clock.sleep(Math.max(due - this.now(), 0), signal);
      if (this.primary !== undefined) await this.get('observe/poll', instancePath(this.primary));
    }
    await clock.sleep(Math.max(end - this.now(), 0), signal);
  }

  /** When the observed instance is to be read again. */
  #nextReadAt(): number {
    const isObserved = this.isBesideFirst && this.online !== undefined;
    return isObserved ? this.#firstReadAt + this.settings.pollIntervalMs : Number.POSITIVE_INFINITY;
  }

  send(step: string, call: Call): Promise<Exchange> {
    return this.client.send(step, call, this.signal);
  }

  get(step: string, path: string): Promise<Exchange> {
    if (this.primary !== undefined && path === instancePath(this.primary)) this.#firstReadAt = this.now();
    return this.send(step, { method: 'GET', path });
  }

  post(step: string, path: string, body?: unknown): Promise<Exchange> {
    return this.send(step, { method: 'POST', path, ...(body !== undefined && { body }) });
  }

  delete(step: string, path: string): Promise<Exchange> {
    return this.send(step, { method: 'DELETE', path });
  }

  /** Records the price in the answer to a create of a volume. */
  learnVolumePrice({ pricePerHour }: Entry, sizeGb: number): void {
    if (pricePerHour === undefined) return;
    this.#volumeUsdPerGb = Math.max(this.#volumeUsdPerGb ?? 0, pricePerHour / sizeGb);
  }

  /** The price of a volume of that size, once one is known, for the cost cap. */
  volumePrice(sizeGb: number): { pricePerHour?: number } {
    return this.#volumeUsdPerGb === undefined ? {} : { pricePerHour: this.#volumeUsdPerGb * sizeGb };
  }

  /** How many polled reads of instances the run has sent, and got answered 200. */
  get polls(): number {
    return this.#parts.transcript.records.filter(
      (record) => record.kind === 'exchange' && isPolledRead(record),
    ).length;
  }

  /** The ids of the instances that were there before the run's first create. */
  get idsBefore(): ReadonlySet<string> {
    return this.#parts.resources.idsBefore;
  }

  /** Whether the cost cap allows further instances of these prices, in USD per hour. */
  affords(pricesPerHour: readonly (number | undefined)[]): boolean {
    return this.#parts.resources.affords(pricesPerHour);
  }

  /** Takes a list of all instances as that before the run's first create. */
  knowBefore(list: Exchange): void {
    this.#parts.resources.knowBefore(list);
  }

  /** Throws `BudgetError`. */
  create(request: ResourceRequest): Promise<CreateResult> {
    return this.#parts.resources.create(request);
  }

  /** Throws `BudgetError`. */
  createTogether(requests: readonly ResourceRequest[]): Promise<CreateResult[]> {
    return this.#parts.resources.createTogether(requests);
  }

  /** Whether the run has instances, which may take the unit or the quota that something else needs. */
  get holdsInstances(): boolean {
    return this.ledger.open.some(({ type, id }) => type === 'instance' && id !== undefined);
  }

  /** Skips a scenario, as no unit is free for it; or postpones it, if the run itself holds instances. */
  skipForLackOfUnits(scenario: string, reason: string, capability?: string): void {
    if (this.holdsInstances) this.postponed.add(scenario);
    else this.skip([scenario], reason, capability);
  }

  /** Records skipped steps. `capability` names one that the target does not have. */
  skip(steps: readonly string[], reason: string, capability?: string): void {
    this.#parts.transcript.add({
      kind: 'skipped',
      steps,
      reason,
      ...(capability !== undefined && { capability }),
    });
  }

  addRestart(record: RestartRecord): void {
    this.#parts.transcript.add(record);
  }

  /** Reports what the run waits for. */
  waitsFor(text: string): void {
    this.#parts.onWait(text);
  }

  /**
   * Follows the answers of one wait. The returned function reports whether an answer shows that the wait cannot
   * succeed.
   */
  hopeFor(of: Awaited['of'], { onTheWay, askedAt }: Partial<Wait>): (exchange: Exchange) => boolean {
    const limiter = new WaitLimiter(this.#parts.knownReasons, askedAt);
    return (exchange) => limiter.take(prospectOf(exchange, { of, onTheWay }), exchange.sentAt) !== undefined;
  }

  /**
   * Polls an instance at the run's interval until `isReached` accepts its status ('404' for a read answered 404), and
   * lists all instances at drawn moments meanwhile. Returns that read; undefined on timeout, or if the wait cannot succeed
   * any more.
   */
  async poll(
    step: `${string}poll`,
    instance: Pick<Instance, 'id' | 'region'>,
    isReached: (status: string | undefined, body: JsonObject | undefined) => boolean,
    wait: Wait,
  ): Promise<Exchange | undefined> {
    const { pollIntervalMs, readyTimeoutMs } = this.settings;
    const startedAt = this.now();
    const isInVain = this.hopeFor('instance', wait);
    this.waitsFor(wait.text);
    for (let next = startedAt; ; next = Math.max(next + pollIntervalMs, this.now())) {
      const asked = this.now();
      const exchange = await this.get(step, instancePath(instance));
      const body = successOf(exchange);
      const status = exchange.answer?.status === 404 ? '404' : stringField(body, 'status');
      const isSampleDue = this.#samples.isDue(exchange.endedAt);
      if (isReached(status, body)) return exchange;
      if (isInVain(exchange)) return undefined;
      if (asked - startedAt >= Math.max(readyTimeoutMs, wait.atLeastMs ?? 0)) return undefined;
      if (isSampleDue) this.#samples.taken(await this.get(SAMPLE_STEP, '/instances'));
      await this.sleep(Math.max(next + pollIntervalMs - this.now(), 0));
    }
  }

  /**
   * Logs in to an instance at the endpoint in a read of it. Without a user name in it, tries the usual ones. The record
   * is of the first successful one, or of the last. `owner` is the ledger entry whose keys are used; default: that of the
   * instance, or of the primary instance if the read shows an unknown id.
   */
  async login(
    step: string,
    shown: JsonObject,
    key: KeyName,
    { command = 'true', owner }: { command?: string; owner?: number } = {},
  ): Promise<SshRecord> {
    const { host, port, username } = sshEndpointOf(shown);
    const instanceId = stringField(shown, 'id') ?? '';
    const { keys, ledger } = this.#parts;
    const known = ledger.entries.find(({ id }) => id === instanceId);
    const entry = owner ?? (known ?? this.primary?.entry)?.n;
    const { privateKey } = key === 'other' ? keys.other : keys.pair(entry, key === 'foreign' ? 'first' : key);
    const knownUser = username ?? this.#usernames.get(instanceId);
    const usernames = knownUser === undefined ? USUAL_USERNAMES : [knownUser];
    const sentAt = this.now();
    for (const [index, name] of usernames.entries()) {
      const outcome = await this.#logInAs({ host, port, username: name, privateKey }, command);
      const isRefused = outcome.rung === 'authenticate';
      if (isRefused && index < usernames.length - 1) continue;
      if (!isRefused) this.#usernames.set(instanceId, name);
      return this.#recordLogin({
        step,
        sentAt,
        instanceId,
        key,
        host,
        port,
        username: name,
        command,
        ...outcome,
        ...(isRefused && knownUser === undefined && { message: `refused for ${usernames.join(', ')}` }),
      });
    }
    throw new Error('there is always a user name to try');
  }

  async #logInAs(as: Pick<SshLogin, 'host' | 'port' | 'username' | 'privateKey'>, command: string) {
    const { ssh, allowPrivate } = this.#parts;
    const { totalMs: _, ...outcome } = await ssh.login({
      ...as,
      command,
      timeoutMs: SSH_TIMEOUT_MS,
      allowPrivate,
      signal: this.signal,
    });
    this.signal.throwIfAborted();
    return outcome;
  }

  #recordLogin(login: Omit<SshRecord, 'kind' | 'n' | 'endedAt'>): SshRecord {
    const record: SshRecord = { kind: 'ssh', n: ++this.#logins, ...login, endedAt: this.now() };
    this.#parts.transcript.add(record);
    return record;
  }
}

export interface SshEndpoint {
  host: string;
  port: number;
  /** Undefined if the instance has none. */
  username: string | undefined;
}

/** The SSH endpoint of an instance: ssh_port, or the port forwarded to 22, or 22 (O: Instance). */
export function sshEndpointOf(shown: JsonObject): SshEndpoint {
  const forward = objectsField(shown, 'port_forwards').find(({ internal_port }) => internal_port === 22);
  return {
    host: stringField(shown, 'public_ip') ?? '',
    port: numberField(shown, 'ssh_port') ?? numberField(forward, 'external_port') ?? 22,
    username: stringField(shown, 'ssh_username'),
  };
}
