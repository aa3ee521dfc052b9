import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/**
 * When a connection breaks at some words. `before`: they are dropped · `after`: the answer is dropped ·
 * `hidden`: at once; the server gets them at `sayHidden` · `stalled`: nothing breaks, the
 * answer waits for `answerStalled` · `held`: the words are dropped; it breaks at `breakHeld`
 */
export type Break = 'before' | 'after' | 'hidden' | 'stalled' | 'held';

/** Starts a proxy to a database on which a test can cut or silence connections. `await using` stops it. */
export async function startWire(databaseUrl: string) {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let armed: { words: string; when: Break } | undefined;
  let unsaid = '';
  let isSilent = false;
  let packets = 0;
  let sayHidden: (() => void) | undefined;
  let answerStalled: (() => void) | undefined;
  let breakHeld: (() => void) | undefined;

  function breakAs(when: Break, client: Socket, upstream: Socket, words: Buffer): void {
    if (when === 'stalled') {
      upstream.pause();
      upstream.write(words);
      answerStalled = () => upstream.resume();
      return;
    }
    if (when === 'held') {
      upstream.removeAllListeners('close');
      breakHeld = () => client.destroy();
      return;
    }
    upstream.removeAllListeners('data');
    // Answers to earlier requests come first.
    upstream.on('data', (answer) => {
      if (answer.includes('COMMIT')) upstream.destroy();
    });
    if (when === 'after') upstream.write(words);
    else client.destroy();
    if (when === 'before') upstream.destroy();
    if (when === 'hidden') sayHidden = () => upstream.end(words);
  }

  function relay(client: Socket, upstream: Socket): void {
    upstream.on('data', (chunk) => {
      if (isSilent) return;
      client.write(chunk);
    });
    upstream.on('close', () => client.destroy());
    client.on('end', () => {
      if (!isSilent) upstream.end();
    });
    client.on('data', (chunk) => {
      if (isSilent) return;
      packets++;
      const said = chunk.toString('latin1');
      if (armed !== undefined && said.includes(armed.words)) {
        const { when } = armed;
        armed = undefined;
        breakAs(when, client, upstream, chunk);
        return;
      }
      if (unsaid !== '' && said.includes(unsaid))
        chunk.write(' '.repeat(unsaid.length), said.indexOf(unsaid), 'latin1');
      upstream.write(chunk);
    });
  }

  const server = createServer({ allowHalfOpen: true }, (client) => {
    const upstream = connect(Number(target.port), target.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    }
    relay(client, upstream);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    url: url.href,
    /** The number of packets sent to the server. */
    packets: () => packets,
    /** Breaks the next connection on which `words` are sent. */
    breakAt(words: string, when: Break): void {
      armed = { words, when };
    },
    /** Sends the words that a `hidden` break withheld. */
    sayHidden(): void {
      sayHidden?.();
      sayHidden = undefined;
    },
    /** Forwards the withheld answer. */
    answerStalled(): void {
      answerStalled?.();
      answerStalled = undefined;
    },
    /** Whether a connection is held. */
    isHeld: () => breakHeld !== undefined,
    /** Breaks the held connection. */
    breakHeld(): void {
      breakHeld?.();
      breakHeld = undefined;
    },
    /** Hides these words from the server. Empty: hides nothing. */
    unsay(words: string): void {
      unsaid = words;
    },
    /** Drops all traffic without closing connections, or stops doing so. */
    silence(value: boolean): void {
      isSilent = value;
    },
    /** Breaks all connections, and accepts no new ones. */
    async cut(): Promise<void> {
      const closed = server.listening ? once(server, 'close') : undefined;
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await this.cut();
    },
  };
}
