import { join } from 'node:path';
import { type Client, type ClientReply, until } from '../http/http-client.ts';
import { faultsOf, type Ledger, readLedger } from '../ledger.ts';
import { PATIENCE_MS } from '../time/until.ts';
import { type FastConfig, writeFastConfig } from './process.ts';
import { ServerLives } from './server-lives.ts';

/** One server over many lives on the simulator, whose rows and machines are compared. */
export class MortalServer extends ServerLives {
  constructor(config: FastConfig = {}) {
    super((folder) => writeFastConfig(folder, config));
  }

  /** Sends a request until there is a reply, as a client does whose server went away. */
  async insist(send: (client: Client) => Promise<ClientReply>): Promise<ClientReply> {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      const reply = await send(this.client).catch(() => undefined);
      if (reply !== undefined && reply.status !== 503) return reply;
      if (Date.now() > deadline) throw new Error('there is no reply');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  ledger(): Ledger {
    return readLedger(join(this.folder, 'data', 'berth.db'));
  }

  /** Waits until nothing is under way; then each row has its machine and its claim, and nothing is left over. */
  async expectOrder(): Promise<void> {
    await until(
      async () => this.ledger().work.length === 0,
      () => `work is still open: ${JSON.stringify(this.ledger())}`,
    );
    const faults = faultsOf(this.ledger());
    if (faults.length > 0) throw new Error(faults.join('\n'));
  }
}

/** Reads an instance over and over, through deaths and restarts, and remembers if it ever read 404. */
export function watchFor404(server: MortalServer, path: string): { stop(): Promise<number> } {
  let isOver = false;
  let count = 0;
  const watching = (async () => {
    while (!isOver) {
      const reply = await server.client.request('GET', path).catch(() => undefined);
      if (reply?.status === 404) count++;
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
  })();
  return {
    async stop() {
      isOver = true;
      await watching;
      return count;
    },
  };
}
