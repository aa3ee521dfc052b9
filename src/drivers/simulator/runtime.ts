import type { OwnerRef, Step } from '../../orchestrator/ports/platform-driver.ts';
import type { Clock, Timer } from '../../ports/clock.ts';
import { runFirstBootCommand, writeFirstFiles } from './first-boot.ts';
import { GUEST_USER, type Guest } from './guest.ts';
import { GuestFiles, rootDisk } from './guest-files.ts';
import { serveGuestSession } from './guest-session.ts';
import { isGuestUp, machineAt, nextChangeAt, privateIpOf } from './lifecycle.ts';
import type { Draws, SimulatorConfig } from './options.ts';
import { openSshServer, type SshServer } from './ssh-server.ts';
import type { MachineRecord, SimulatorState } from './state.ts';
import type { SimulatedVolumes } from './volumes.ts';

interface Parts {
  state: SimulatorState;
  clock: Clock;
  draws: Draws;
  config: SimulatorConfig;
  host: string;
  volumes: SimulatedVolumes;
}

/** What a machine has in this process while its guest is up. */
interface RunningGuest {
  server: SshServer | undefined;
  boot: AbortController;
  /** Ends when the runcmd lines have run or the guest went down. */
  firstBoot: Promise<void>;
}

/**
 * Makes the machines real: brings each one's record, SSH server and guest to what the time says they
 * are. One machine's work is done one step after another, different machines' side by side.
 */
export class Runtime {
  readonly #parts: Parts;
  readonly #guests = new Map<OwnerRef, RunningGuest>();
  readonly #timers = new Map<OwnerRef, Timer>();
  readonly #queues = new Map<OwnerRef, Promise<unknown>>();
  #isClosed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Brings every machine up to date after the platform's process was started. */
  async restore(): Promise<void> {
    await Promise.all(this.#parts.state.machines.all().map((record) => this.settle(record.spec.ref)));
  }

  /** The record as it is at `now`; undefined: gone. */
  current(record: MachineRecord, now: number): MachineRecord | undefined {
    const reapAfterS = this.#parts.config.reap_stopped_after_s;
    return machineAt(record, now, reapAfterS === undefined ? undefined : reapAfterS * 1000);
  }

  /** Brings the machine up to date; its record, or undefined when it is gone with all that it had. */
  settle(ref: OwnerRef): Promise<MachineRecord | undefined> {
    return this.#inTurn(ref, () => this.#settle(ref));
  }

  /**
   * Shows `decide` the machine as it is, writes the record that it returns, if any, and brings the
   * machine up to date with it. A failure that it returns is the answer.
   */
  order(
    ref: OwnerRef,
    decide: (record: MachineRecord | undefined) => MachineRecord | Step<never> | undefined,
  ): Promise<Step<never> | { settled: MachineRecord | undefined }> {
    return this.#inTurn(ref, async () => {
      const decision = decide(await this.#settle(ref));
      if (decision !== undefined && 'outcome' in decision) return decision;
      if (decision !== undefined) this.#parts.state.machines.put(ref, decision);
      return { settled: await this.#settle(ref) };
    });
  }

  /** Closes every server and timer; the records stay. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    await Promise.all(this.#queues.values());
    await Promise.all([...this.#guests.keys()].map((ref) => this.#bringDown(ref)));
  }

  /** Runs `work` after all earlier work on the machine has ended. */
  #inTurn<T>(ref: OwnerRef, work: () => Promise<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(new Error('the simulator is closed'));
    const turn = (this.#queues.get(ref) ?? Promise.resolve()).then(work);
    const ended = turn
      .catch(() => {})
      .then(() => {
        if (this.#queues.get(ref) === ended) this.#queues.delete(ref);
      });
    this.#queues.set(ref, ended);
    return turn;
  }

  async #settle(ref: OwnerRef): Promise<MachineRecord | undefined> {
    const { state, clock, volumes } = this.#parts;
    const record = state.machines.get(ref);
    const current = record && this.current(record, clock.now());
    if (current !== undefined && current !== record) state.machines.put(ref, current);
    if (current !== undefined && isGuestUp(current, clock.now())) await this.#bringUp(current);
    else await this.#bringDown(ref);
    if (record !== undefined && current === undefined) {
      state.transaction(() => {
        volumes.release(ref);
        state.deleteDisk(rootDisk(ref));
        state.machines.delete(ref);
      });
    }
    this.#arm(ref);
    return state.machines.get(ref);
  }

  /** Sees to it that the machine is looked at when it changes next. */
  #arm(ref: OwnerRef): void {
    this.#timers.get(ref)?.cancel();
    this.#timers.delete(ref);
    const { state, clock } = this.#parts;
    const record = state.machines.get(ref);
    const at = record && nextChangeAt(record, clock.now());
    if (at === undefined || this.#isClosed) return;
    this.#timers.set(
      ref,
      clock.setTimer(at - clock.now(), () => this.#settleInBackground(ref)),
    );
  }

  /** What fails here fails again, and is told, when somebody asks about the machine. */
  #settleInBackground(ref: OwnerRef): void {
    this.settle(ref).catch(() => {});
  }

  async #bringUp(record: MachineRecord): Promise<void> {
    const { ref } = record.spec;
    if (this.#guests.has(ref)) return;
    const { clock, host, draws, config } = this.#parts;
    const guest = this.#guestOf(ref);
    if (record.memoryOf !== record.bootedAt) {
      guest.files.forgetMemory();
      this.#update(ref, { memoryOf: record.bootedAt });
    }
    if (record.cloudInitUntil === null) {
      writeFirstFiles(record.spec, guest.files);
      const settlingMs = draws.durationMs(`${ref}/cloud-init`, config.boot_ms) / 2;
      this.#update(ref, { cloudInitUntil: (record.bootedAt ?? clock.now()) + settlingMs });
    }
    const boot = new AbortController();
    const { sshPort: port, sshHostKey, spec } = record;
    const server = await openSshServer(
      {
        host,
        port,
        hostKey: sshHostKey.privateKey,
        username: GUEST_USER,
        authorizedKeys: spec.sshKeys,
        onSession: (session, gone) => serveGuestSession(session, guest, AbortSignal.any([gone, boot.signal])),
      },
      clock,
    );
    if (server.port !== port) this.#update(ref, { sshPort: server.port });
    // The address is given even where nothing will ever answer there.
    if (!record.sshListens) await server.close();
    const running: RunningGuest = {
      server: record.sshListens ? server : undefined,
      boot,
      firstBoot: Promise.resolve(),
    };
    this.#guests.set(ref, running);
    running.firstBoot = this.#runFirstBoot(ref, guest, boot.signal);
  }

  async #bringDown(ref: OwnerRef): Promise<void> {
    const guest = this.#guests.get(ref);
    if (guest === undefined) return;
    this.#guests.delete(ref);
    guest.boot.abort();
    await guest.server?.close();
    await guest.firstBoot;
  }

  /** Runs the runcmd lines that have not run yet; each counts as soon as it has ended. */
  async #runFirstBoot(ref: OwnerRef, guest: Guest, signal: AbortSignal): Promise<void> {
    for (;;) {
      const record = this.#parts.state.machines.get(ref);
      const line = record?.spec.cloudInit?.runcmd?.[record.runcmdDone];
      if (record === undefined || line === undefined) return;
      await runFirstBootCommand(line, guest, signal);
      if (signal.aborted) return;
      this.#update(ref, { runcmdDone: record.runcmdDone + 1 });
    }
  }

  #guestOf(ref: OwnerRef): Guest {
    const { state, clock, volumes } = this.#parts;
    const record = (): MachineRecord => {
      const found = state.machines.get(ref);
      if (found === undefined) throw new Error(`machine ${ref} is gone`);
      return found;
    };
    const attached = (): { ref: string; sizeGb: number }[] =>
      volumes.attachedTo(ref).map((volume) => volume.spec);
    return {
      files: new GuestFiles(
        state,
        ref,
        () => attached().map((volume) => volume.ref),
        () => clock.now(),
      ),
      clock,
      facts: () => {
        const { spec, bootedAt, cloudInitUntil, runcmdDone } = record();
        const isRunning =
          (cloudInitUntil ?? Infinity) > clock.now() || runcmdDone < (spec.cloudInit?.runcmd?.length ?? 0);
        const cloudInit = isRunning ? 'running' : 'done';
        return {
          spec,
          bootedAt: bootedAt ?? clock.now(),
          privateIp: privateIpOf(record()),
          cloudInit,
          volumes: attached(),
        };
      },
      powerOff: () =>
        this.#goDown(ref, {
          power: 'stopping',
          until: this.#downAt(record(), 'stop', this.#parts.config.stop_ms),
        }),
      reboot: () =>
        this.#goDown(ref, { bootedAt: this.#downAt(record(), 'reboot', this.#parts.config.start_ms) }),
    };
  }

  #downAt(record: MachineRecord, name: string, range: [number, number]): number {
    const { clock, draws } = this.#parts;
    return clock.now() + draws.durationMs(`${record.spec.ref}/${record.boots}/${name}`, range);
  }

  /** The guest goes down by its own doing. The command that asked for it ends first. */
  #goDown(ref: OwnerRef, change: Partial<MachineRecord>): void {
    if (this.#parts.state.machines.get(ref)?.power !== 'running') return;
    this.#update(ref, change);
    setImmediate(() => this.#settleInBackground(ref));
  }

  #update(ref: OwnerRef, change: Partial<MachineRecord>): void {
    const record = this.#parts.state.machines.get(ref);
    if (record !== undefined) this.#parts.state.machines.put(ref, { ...record, ...change });
  }
}
