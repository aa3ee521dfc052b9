import { execFile } from 'node:child_process';
import { appendFileSync, chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '../support/http/http-client.ts';
import { BerthProcess, quickFile } from '../support/processes/process.ts';
import { PATIENCE_MS } from '../support/time/until.ts';
import { wordsOf } from './command-line.ts';
import { root } from './pages.ts';

const run = promisify(execFile);

/** What a server's line of JSON has. */
type Ready = Record<string, string | undefined>;

/** What a shell that failed had printed; its message has only what went to standard error. */
type Failed = Record<'code' | 'stdout' | 'stderr', string>;

/** Where a page expects a server that was started without `--port`. */
const DEFAULT_PORTS: Record<string, { api: number; admin?: number }> = {
  serve: { api: 8080, admin: 9080 },
  marketplace: { api: 8100, admin: 9081 },
  simulator: { api: 8090 },
  sandbox: { api: 8099 },
};

/** A process is begun for each paste. */
const PACE = { everyMs: 200, withinMs: PATIENCE_MS };

/** It goes on, and the reader goes to another terminal. */
const SERVES = /^(?:berth|npm run -s berth --|npx berth) (serve|simulator|sandbox|marketplace --)/;
/** So does this one, which says on which port it publishes. */
const MONITORS = /^berth (conformance monitor --config \S+)/;

/**
 * A reader with a page and terminals: pastes its commands into a folder that looks like a checkout. Servers take free
 * ports, and what the page says of theirs is read as that; so is each text given to `read`.
 */
export class Reader implements AsyncDisposable {
  readonly folder: string;
  readonly #readAs: [text: string, meaning: string][] = [];
  /** What ends with the reader, the last first. */
  readonly #owned = new AsyncDisposableStack();
  readonly #servers: BerthProcess[] = [];
  readonly #known: Record<string, string> = {};
  /** The functions that the page has defined: each paste is a shell of its own. */
  #functions = '';

  constructor(folder: string) {
    this.folder = folder;
    for (const name of ['examples', 'fixtures', 'openapi']) symlinkSync(join(root, name), join(folder, name));
    mkdirSync(join(folder, 'bin'));
    const berth = join(folder, 'bin/berth');
    writeFileSync(berth, `#!/bin/sh\nexec '${process.execPath}' '${quickFile}' "$@"\n`);
    chmodSync(berth, 0o755);
  }

  /** Where the page says `text`, this reader has `meaning`. The last that was said goes. */
  read(text: string, meaning: string): void {
    this.#readAs.unshift([text, meaning]);
  }

  /** Sets a variable of the terminals. */
  know(name: string, value: string): void {
    this.#known[name] = value;
  }

  /** Ends with the reader. */
  owns<T extends AsyncDisposable>(one: T): T {
    return this.#owned.use(one);
  }

  /** What a test of the page adds to a file of the reader, such as times of a platform that boots at once. */
  append(file: string, text: string): void {
    appendFileSync(join(this.folder, file), text);
  }

  /** Runs a command of a page, and returns what it prints. A refused request is an error; so is any exit code but 0. */
  async paste(command: string): Promise<string> {
    const text = this.#meaningOf(command);
    const [, kind] = SERVES.exec(text.replace(/^(\w+=\S+ )+/, '')) ?? [];
    if (kind !== undefined) return JSON.stringify(await this.#serve(text, kind.split(' ')[0] ?? ''));
    const [, monitor] = MONITORS.exec(text) ?? [];
    if (monitor !== undefined) return await this.#monitor(monitor.split(' '));
    if (text.startsWith('export ')) return await this.#export(text);
    if (/^\w+\(\) \{/.test(text)) this.#functions += `${text}\n`;
    const commands = `${this.#functions}${text}`.replaceAll('npm run -s berth --', 'command berth');
    const script = `curl() { command curl --fail-with-body "$@"; }\n${commands}`;
    const options = { cwd: this.folder, env: this.#environment() };
    const { stdout } = await run('bash', ['-c', script], options).catch((error: Failed) => {
      throw new Error(`\`${text}\` failed (${error.code}) and printed:\n${error.stdout}\n${error.stderr}`);
    });
    return stdout;
  }

  /** Pastes it again and again, until it prints that. */
  async pasteUntil(command: string, awaited: RegExp): Promise<string> {
    let printed = '';
    const prints = async (): Promise<boolean> => {
      printed = await this.paste(command);
      return awaited.test(printed);
    };
    await until(prints, () => `${command} prints no ${awaited}:\n${printed}`, PACE);
    return printed;
  }

  /** Ends the servers that the reader has started, as Ctrl-C does. */
  async endServers(): Promise<void> {
    for (const server of this.#servers) await server.end('SIGINT');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }

  #meaningOf(command: string): string {
    return this.#readAs.reduce((text, [from, to]) => text.replaceAll(from, to), command);
  }

  #environment(): Record<string, string> {
    const path = [join(this.folder, 'bin'), process.env['PATH'] ?? ''].join(delimiter);
    return { ...this.#known, PATH: path, HOME: this.folder };
  }

  /** `export A=… B=value`: where the page leaves a value out, this reader knows it. */
  async #export(command: string): Promise<string> {
    for (const word of (wordsOf(command)[0] ?? []).slice(1)) {
      const [name = '', value = ''] = word.split(/=(.*)/s);
      if (!value.includes('…')) this.#known[name] = await this.paste(`printf %s "${value}"`);
      else if (this.#known[name] === undefined) throw new Error(`nothing printed says what ${name} is`);
    }
    return '';
  }

  async #monitor(args: string[]): Promise<string> {
    const monitor = this.owns(new BerthProcess(args, { cwd: this.folder, env: this.#environment() }));
    this.#servers.push(monitor);
    const listens = (): string | undefined => /^listening on port \d+$/m.exec(monitor.stderr)?.[0];
    const isDecided = async (): Promise<boolean> =>
      listens() !== undefined || monitor.child.exitCode !== null;
    await until(isDecided, () => `the monitor does not listen:\n${monitor.stderr}`, PACE);
    return listens() ?? Promise.reject(new Error(monitor.stderr));
  }

  async #serve(command: string, kind: string): Promise<Ready> {
    const words = (wordsOf(command)[0] ?? []).filter(
      (word) => !['npm', 'run', '-s', '--', 'npx', 'berth'].includes(word),
    );
    const set = words
      .filter((word) => /^[A-Z_]+=/.test(word))
      .map((word) => word.split(/=(.*)/s).slice(0, 2));
    const args = words.filter((word) => !/^[A-Z_]+=/.test(word));
    const env = { ...this.#environment(), ...Object.fromEntries(set) };
    const server = this.owns(new BerthProcess([...args, '--port', '0', '--json'], { cwd: this.folder, env }));
    this.#servers.push(server);
    const ready: Ready = JSON.parse(await server.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]));
    const port = args[args.indexOf('--port') + 1];
    const { api, admin } = DEFAULT_PORTS[kind] ?? { api: 0 };
    const expected = args.includes('--port') ? Number(port) : api;
    if (ready['base_url']) this.read(`http://127.0.0.1:${expected}`, new URL(ready['base_url']).origin);
    if (ready['admin_url']) this.read(`http://127.0.0.1:${admin}`, new URL(ready['admin_url']).origin);
    return ready;
  }
}
