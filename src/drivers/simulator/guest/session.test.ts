import { EventEmitter, once } from 'node:events';
import { Duplex, PassThrough } from 'node:stream';
import type { Session } from 'ssh2';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import { GuestFiles } from '../platform/disk-files.ts';
import { SimulatorState } from '../platform/state.ts';
import { machineSpec } from '../simulator.fixture.ts';
import type { Guest } from './guest.ts';
import { serveGuestSession } from './session.ts';

let state: SimulatorState;
let guest: Guest;
let gone: AbortController;

beforeEach(() => {
  const clock = new VirtualClock();
  state = new SimulatorState(':memory:');
  gone = new AbortController();
  guest = {
    files: new GuestFiles(state, 'berth-1', () => []),
    clock,
    facts: () => ({ spec: machineSpec(), bootedAt: clock.now(), cloudInit: 'done', volumes: [] }),
    powerOff: () => {},
    reboot: () => {},
  };
});
afterEach(() => {
  gone.abort();
  state.close();
});

/** The server's end of a channel. `push` is what the client sends. */
class Channel extends Duplex {
  readonly stderr = new PassThrough();
  readonly #isRead: boolean;
  output = '';
  exit = vi.fn();

  /** `isRead`: whether the client reads the output. */
  constructor(isRead = true) {
    super();
    this.#isRead = isRead;
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, written: () => void): void {
    this.output += chunk;
    if (this.#isRead) written();
  }

  close(): void {
    this.destroy();
  }
}

function openSession(channel: Channel, kind: 'shell' | 'exec', command = ''): void {
  const session = new EventEmitter();
  serveGuestSession(session as Session, guest, gone.signal);
  if (kind === 'shell') session.emit('pty', () => {});
  session.emit(
    kind,
    () => channel,
    () => {},
    { command },
  );
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => void setImmediate(resolve));
}

it('ignores Ctrl-Z, which must not suspend the process of the simulator', async () => {
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
  try {
    const channel = new Channel();
    openSession(channel, 'shell');
    channel.push('\u001aecho still here\r');
    await expect.poll(() => channel.output).toContain('\r\nstill here\r\n');
    expect(kill).not.toHaveBeenCalled();
    channel.push(null);
    await once(channel, 'finish');
  } finally {
    kill.mockRestore();
  }
});

it('reads no further keys of a client that does not read their echo', async () => {
  const channel = new Channel(false);
  openSession(channel, 'shell');
  channel.push('\r'.repeat(20_000));
  await turns(45_000);
  expect(channel.writableLength).toBeLessThan(2 * channel.writableHighWaterMark);
  channel.destroy();
});

it.each([
  ['at its prompt', 'echo here\r', 'here'],
  ['in the middle of a line', 'echo he', 'echo he'],
  ['after its shell has ended', 'exit\r', 'logout'],
  ['after Ctrl-D', '\u0004', 'logout'],
])('outlives a client that disconnects %s', async (_when, input, output) => {
  const uncaught = vi.fn();
  process.on('uncaughtException', uncaught);
  try {
    const channel = new Channel();
    openSession(channel, 'shell');
    channel.push(input);
    await expect.poll(() => channel.output).toContain(output);
    channel.destroy();
    await turns(20);
    expect(uncaught).not.toHaveBeenCalled();
  } finally {
    process.off('uncaughtException', uncaught);
  }
});

it('reads the input of a command as UTF-8, however it arrives', async () => {
  const channel = new Channel();
  openSession(channel, 'exec', 'cat');
  const bytes = Buffer.from('é');
  channel.push(bytes.subarray(0, 1));
  await new Promise((resolve) => void setImmediate(resolve));
  channel.push(bytes.subarray(1));
  channel.push(null);
  await once(channel, 'finish');
  expect(channel.output).toBe('é');
});
