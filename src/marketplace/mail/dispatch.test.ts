import { expect, it } from 'vitest';
import { mail, now, userId } from '../../../test/support/rows/marketplace-rows.ts';
import { type Books, openBooks } from '../ledger/ledger.fixture.ts';
import type { MailRecord } from '../model/ledger-records.ts';
import { MailDispatcher } from './dispatch.ts';
import type { Mailer } from './mailer.ts';
import { queueMail } from './outbox.ts';
import { startSmtpServer } from './smtp.fixture.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const down: Mailer = {
  send: async () => Promise.reject(new Error('connection refused')),
  close: () => undefined,
};

function put({ store }: Books, changes: Partial<MailRecord> = {}): Promise<void> {
  return store.transact((tx) => tx.mail.insert(mail(changes)));
}

async function outbox({ store }: Books): Promise<MailRecord[]> {
  return (await store.read.mail.list({ limit: 100 })).toReversed();
}

it('sends a mail once, after its transaction', async () => {
  const books = await openBooks();
  const server = await startSmtpServer();
  const dispatcher = new MailDispatcher({ ...books.deps, mailer: server.mailer() });
  const user = await books.store.read.users.byId(userId);
  if (user === null) throw new Error('it is seeded');
  const news = {
    class: 'billing',
    kind: 'receipt',
    dedupeKey: 'receipt:1',
    subject: 'Ünïcode',
    text: 'Hello.\n',
  } as const;
  for (let time = 0; time < 2; time++)
    await books.store.transact((tx) => queueMail(books.deps, tx, user, news));
  await dispatcher.run();
  await dispatcher.run();
  const [record] = await outbox(books);
  expect(record).toMatchObject({ sentAt: now, attempts: 1, lastError: null });
  expect(server.received).toHaveLength(1);
  expect(server.received[0]).toMatchObject({ from: 'no-reply@berth.example', to: ['usr-1@example.com'] });
  expect(server.received[0]?.raw).toContain(`Message-ID: <${record?.id}@berth.example>`);
  expect(server.received[0]?.raw).toMatch(/^Subject: =\?UTF-8\?/m);
  await dispatcher.stop();
});

it('sends no mail of a failed transaction', async () => {
  const books = await openBooks();
  await expect(
    books.store.transact(async (tx) => {
      await tx.mail.insert(mail());
      throw new Error('not after all');
    }),
  ).rejects.toThrow('not after all');
  expect(await outbox(books)).toEqual([]);
});

it('retries a mail that the server refuses temporarily, and sends the others meanwhile', async () => {
  const books = await openBooks();
  const server = await startSmtpServer({
    answer: (nth) => (nth === 1 ? { code: 451, text: 'greylisted' } : null),
  });
  await put(books, { id: 'mail-1' });
  await put(books, { id: 'mail-2', createdAt: now + 1 });
  const dispatcher = new MailDispatcher({ ...books.deps, mailer: server.mailer() });
  await books.clock.advance(1);
  await dispatcher.run();
  expect(server.received.map(({ raw }) => /<(mail-\d)@/.exec(raw)?.[1])).toEqual(['mail-2']);
  expect((await outbox(books))[0]).toMatchObject({
    attempts: 1,
    lastError: expect.stringContaining('greylisted'),
  });
  await books.clock.advance(MINUTE_MS);
  await dispatcher.run();
  expect(server.received).toHaveLength(2);
  expect((await outbox(books))[0]).toMatchObject({
    attempts: 2,
    lastError: null,
    sentAt: now + 1 + MINUTE_MS,
  });
});

it('resends a mail with the same Message-ID where the sending could not be recorded', async () => {
  const books = await openBooks();
  const server = await startSmtpServer();
  await put(books);
  let isDying = true;
  const store: Books['store'] = {
    ...books.store,
    transact: (body) =>
      books.store.transact(async (tx) => {
        const update: typeof tx.mail.update = (record) =>
          isDying ? Promise.reject(new Error('killed')) : tx.mail.update(record);
        return body({ ...tx, mail: { ...tx.mail, update } });
      }),
  };
  const dispatcher = new MailDispatcher({ ...books.deps, store, mailer: server.mailer() });
  await dispatcher.run();
  isDying = false;
  await dispatcher.run();
  await dispatcher.run();
  const ids = server.received.map(({ raw }) => /^Message-ID: (.*)$/m.exec(raw)?.[1]?.trim());
  expect(ids).toEqual(['<mail-1@berth.example>', '<mail-1@berth.example>']);
});

it('backs off while the server is unreachable, tries one mail per round, and gives up after three days', async () => {
  const books = await openBooks();
  await put(books, { id: 'mail-1' });
  await put(books, { id: 'mail-2', createdAt: now + 1 });
  let asked = 0;
  const mailer: Mailer = {
    ...down,
    send: (sent) => {
      asked += 1;
      return down.send(sent);
    },
  };
  const dispatcher = new MailDispatcher({ ...books.deps, mailer });
  await dispatcher.run();
  expect(asked).toBe(1);
  for (let minute = 0; minute < 4 * 24 * 60; minute += 30) {
    await books.clock.advance(30 * MINUTE_MS);
    await dispatcher.run();
  }
  expect(asked).toBeLessThan(70);
  const records = await outbox(books);
  expect(records.every(({ failedAt }) => failedAt !== null && failedAt - now >= 3 * DAY_MS)).toBe(true);
  expect(books.lines.filter(({ message }) => message === 'a mail is given up')).toHaveLength(2);
  const before = asked;
  await books.clock.advance(DAY_MS);
  await dispatcher.run();
  expect(asked).toBe(before);
});

it('waits silently without a mailer, and sends the mails that are not too old once there is one', async () => {
  const books = await openBooks();
  const server = await startSmtpServer();
  await put(books, { id: 'mail-1' });
  await put(books, { id: 'mail-2', createdAt: now + 2 * DAY_MS, dueAt: now + 2 * DAY_MS });
  const without = new MailDispatcher({ ...books.deps, mailer: null });
  for (let day = 0; day < 3; day++) {
    await without.run();
    expect((await outbox(books))[0]).toMatchObject({ attempts: 0, lastError: null, failedAt: null });
    await books.clock.advance(DAY_MS);
  }
  await without.run();
  await without.stop();
  await new MailDispatcher({ ...books.deps, mailer: server.mailer() }).run();
  expect(server.received.map(({ raw }) => /<(mail-\d)@/.exec(raw)?.[1])).toEqual(['mail-2']);
  expect((await outbox(books))[0]).toMatchObject({ attempts: 0, sentAt: null, failedAt: now + 3 * DAY_MS });
  expect(books.lines).toEqual([]);
});

it('sends in one process at a time', async () => {
  const books = await openBooks();
  const server = await startSmtpServer();
  await put(books);
  const dispatchers = [1, 2].map(() => new MailDispatcher({ ...books.deps, mailer: server.mailer() }));
  await Promise.all(dispatchers.map((dispatcher) => dispatcher.run()));
  expect(server.received).toHaveLength(1);
});

it('deletes old sent mails in pages, and none where the configuration keeps all', async () => {
  const books = await openBooks();
  const sent = (id: string, createdAt: number) => mail({ id, createdAt, sentAt: createdAt });
  await books.store.transact(async (tx) => {
    for (let number = 0; number < 700; number++)
      await tx.mail.insert(sent(`old-${number}`, now - 90 * DAY_MS - 1 - number));
    await tx.mail.insert(sent('young', now - 90 * DAY_MS));
    await tx.mail.insert(mail({ id: 'waits', createdAt: now - MINUTE_MS, dueAt: now + DAY_MS }));
  });
  const count = async () => (await books.store.read.mail.list({ limit: 1_000 })).length;
  const keeping = { ...books.deps.options, mailsKeptMs: null };
  const keeper = new MailDispatcher({ ...books.deps, options: keeping, mailer: null });
  await keeper.run();
  await keeper.stop();
  expect(await count()).toBe(702);
  await books.clock.advance(MINUTE_MS);
  const dispatcher = new MailDispatcher({ ...books.deps, mailer: null });
  for (const left of [202, 1]) {
    await dispatcher.run();
    expect(await count()).toBe(left);
  }
  expect((await outbox(books)).map(({ id }) => id)).toEqual(['waits']);
  await dispatcher.stop();
});
