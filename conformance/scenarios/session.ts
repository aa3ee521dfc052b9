import { instancePath } from '../contract/paths.ts';
import type { Call } from '../http/call.ts';
import type { Clock } from '../http/clock.ts';
import type { SignIn } from '../http/sign-in.ts';
import type { TargetClient } from '../http/target-client.ts';
import type { Entry, Ledger } from '../resources/ledger.ts';
import type { CreateResult, ResourceRequest, Resources } from '../resources/resources.ts';
import type { KeyPair, SshClient } from '../ssh/ssh-client.ts';
import { type JsonObject, numberField, objectsField, textField } from '../text/json.ts';
import { successOf } from '../transcript/exchange.ts';
import type { Exchange, KeyName, Level, RunSettings, SshRecord } from '../transcript/records.ts';
import type { Transcript } from '../transcript/transcript.ts';
import type { Placement } from './placement.ts';

const SSH_TIMEOUT_MS = 20_000;
/** Of the images that are in use, where an instance does not name its own. */
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
  ssh: SshClient;
  /** Whether logins may lead to private addresses. */
  allowPrivate: boolean;
  keys: Readonly<Record<KeyName, KeyPair>>;
  ledger: Ledger;
  resources: Resources;
  transcript: Transcript;
  /** Aborted by Ctrl-C and when the time is up. */
  signal: AbortSignal;
  /** Told what is being waited for. */
  onWait: (text: string) => void;
}

/** What a scenario has to drive the target with, and what earlier ones left for it. */
export class Session {
  readonly #parts: SessionParts;
  #logins = 0;
  /** By instance, the user that was let in. */
  readonly #usernames = new Map<string, string>();
  /** What the scenario `catalog` read. */
  configurations: readonly JsonObject[] = [];
  availability: readonly JsonObject[] = [];
  /** The volume locations; undefined where the target has no storage tier. */
  locations: readonly JsonObject[] | undefined;
  /** The instance that most of the run is about, while it lives. */
  primary: Instance | undefined;
  whyNoPrimary: string | undefined;
  /** The read that last showed `primary` ONLINE; undefined while it is not to be so again. */
  online: JsonObject | undefined;
  /** Where `primary` was last ONLINE, for a look at whether it still answers there. */
  lastOnline: JsonObject | undefined;
  whyNotOnline: string | undefined;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  get settings(): RunSettings {
    return this.#parts.settings;
  }

  get level(): Level {
    return this.#parts.level;
  }

  get signal(): AbortSignal {
    return this.#parts.signal;
  }

  get client(): TargetClient {
    return this.#parts.client;
  }

  get ledger(): Ledger {
    return this.#parts.ledger;
  }

  get signIn(): SignIn {
    return this.#parts;
  }

  publicKey(name: KeyName): string {
    return this.#parts.keys[name].publicKey;
  }

  /** Milliseconds since the run's start. */
  now(): number {
    return this.client.now();
  }

  sleep(ms: number): Promise<void> {
    return this.#parts.clock.sleep(ms, this.signal);
  }

  send(step: string, call: Call): Promise<Exchange> {
    return this.client.send(step, call, this.signal);
  }

  get(step: string, path: string): Promise<Exchange> {
    return this.send(step, { method: 'GET', path });
  }

  post(step: string, path: string, body?: unknown): Promise<Exchange> {
    return this.send(step, { method: 'POST', path, ...(body === undefined ? {} : { body }) });
  }

  delete(step: string, path: string): Promise<Exchange> {
    return this.send(step, { method: 'DELETE', path });
  }

  /** Throws `BudgetError`. */
  create(request: ResourceRequest): Promise<CreateResult> {
    return this.#parts.resources.create(request);
  }

  /** Throws `BudgetError`. */
  createTogether(requests: readonly ResourceRequest[]): Promise<CreateResult[]> {
    return this.#parts.resources.createTogether(requests);
  }

  /** Says that steps are not taken. `capability` names what the target lacks. */
  skip(steps: readonly string[], reason: string, capability?: string): void {
    this.#parts.transcript.add({
      kind: 'skipped',
      steps,
      reason,
      ...(capability === undefined ? {} : { capability }),
    });
  }

  /**
   * Polls an instance at the run's interval until `isReached` says so of its status ('404' where it reads so), and
   * answers with that read, or with undefined when the patience of the run is over.
   */
  async poll(
    step: string,
    instance: Pick<Instance, 'id' | 'region'>,
    isReached: (status: string | undefined, body: JsonObject | undefined) => boolean,
    waitingFor: string,
  ): Promise<Exchange | undefined> {
    const { pollIntervalMs, readyTimeoutMs } = this.settings;
    const startedAt = this.now();
    this.#parts.onWait(waitingFor);
    for (let next = startedAt; ; next = Math.max(next + pollIntervalMs, this.now())) {
      const asked = this.now();
      const exchange = await this.get(step, instancePath(instance));
      const body = successOf(exchange);
      const status = exchange.answer?.status === 404 ? '404' : textField(body, 'status');
      if (isReached(status, body)) return exchange;
      if (asked - startedAt >= readyTimeoutMs) return undefined;
      await this.sleep(Math.max(next + pollIntervalMs - this.now(), 0));
    }
  }

  /**
   * Logs in to an instance as its user would, at the endpoint that a read of it showed. Where that names no user those
   * that images have are tried; the record is of the one that was let in, or of the last.
   */
  async login(step: string, shown: JsonObject, key: KeyName, command = 'true'): Promise<SshRecord> {
    const { host, port, username } = sshEndpointOf(shown);
    const instanceId = textField(shown, 'id') ?? '';
    const known = username ?? this.#usernames.get(instanceId);
    const usernames = known === undefined ? USUAL_USERNAMES : [known];
    const sentAt = this.now();
    for (const [index, name] of usernames.entries()) {
      const outcome = await this.#logInAs({ host, port, username: name }, key, command);
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
        ...(isRefused && known === undefined && { message: `refused for ${usernames.join(', ')}` }),
      });
    }
    throw new Error('there is always a user name to try');
  }

  async #logInAs(at: { host: string; port: number; username: string }, key: KeyName, command: string) {
    const { ssh, keys, allowPrivate } = this.#parts;
    const { totalMs: _, ...outcome } = await ssh.login({
      ...at,
      privateKey: keys[key].privateKey,
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
  /** Undefined where the instance does not say. */
  username: string | undefined;
}

/** Where an instance says that its SSH is: ssh_port, or the port that is forwarded to 22, or 22 (O: Instance). */
export function sshEndpointOf(shown: JsonObject): SshEndpoint {
  const forward = objectsField(shown, 'port_forwards').find(({ internal_port }) => internal_port === 22);
  return {
    host: textField(shown, 'public_ip') ?? '',
    port: numberField(shown, 'ssh_port') ?? numberField(forward, 'external_port') ?? 22,
    username: textField(shown, 'ssh_username'),
  };
}
