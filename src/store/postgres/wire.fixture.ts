import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/**
 * When a connection breaks at some words: before the server hears them, after it has answered them, or at once while
 * the server hears them later, when somebody asks what became of the transaction, or when the test says so and
 * whoever asks is cut off. Or it stalls: the server hears them, and its answer is held back until the test lets it go.
 * Or it is held: the server does not hear them, and the connection breaks when the test says so.
 */
export type Break = 'before' | 'after' | 'late' | 'hidden' | 'stalled' | 'held';

/** The way to a database, on which a test cuts connections, or lets nothing through; `await using` ends it. */
export async function startWire(databaseUrl: string) {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let armed: { words: string; when: Break } | undefined;
  let unsaid = '';
  let isSilent = false;
  let packets = 0;
  let sayLate = (): void => undefined;
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
    // Answers to what was sent before it come first.
    upstream.on('data', (answer) => {
      if (answer.includes('COMMIT')) upstream.destroy();
    });
    if (when === 'after') upstream.write(words);
    else client.destroy();
    if (when === 'before') upstream.destroy();
    if (when === 'hidden') sayHidden = () => upstream.end(words);
    if (when === 'late') sayLate = () => upstream.end(words);
  }

  function relay(client: Socket, upstream: Socket): void {
    let hasAsked = false;
    upstream.on('data', (chunk) => {
      if (isSilent) return;
      client.write(chunk);
      if (hasAsked) sayLate();
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
      if (sayHidden !== undefined && said.includes('pg_xact_status')) {
        client.destroy();
        return;
      }
      if (unsaid !== '' && said.includes(unsaid))
        chunk.write(' '.repeat(unsaid.length), said.indexOf(unsaid), 'latin1');
      upstream.write(chunk);
      hasAsked ||= said.includes('pg_xact_status');
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
    /** How many were sent to the server. */
    packets: () => packets,
    /** The next connection on which `words` are sent breaks. */
    breakAt(words: string, when: Break): void {
      armed = { words, when };
    },
    /** Says what a break hid. */
    sayHidden(): void {
      sayHidden?.();
      sayHidden = undefined;
    },
    /** Lets the answer through that was held back. */
    answerStalled(): void {
      answerStalled?.();
      answerStalled = undefined;
    },
    /** Whether a connection is held. */
    isHeld: () => breakHeld !== undefined,
    /** Breaks the connection that was held. */
    breakHeld(): void {
      breakHeld?.();
      breakHeld = undefined;
    },
    /** From now on the server does not hear these words; empty: it hears all. */
    unsay(words: string): void {
      unsaid = words;
    },
    /** From now on nothing comes through, and nobody is told; or it does again. */
    silence(value: boolean): void {
      isSilent = value;
    },
    /** Breaks what is open, and takes no new connection. */
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
