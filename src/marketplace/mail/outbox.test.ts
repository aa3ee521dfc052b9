import { expect, it } from 'vitest';
import { user } from '../../../test/support/rows/marketplace-rows.ts';
import { openBooks } from '../ledger/ledger.fixture.ts';
import type { MailRecord } from '../model/ledger-records.ts';
import { queueMail } from './outbox.ts';

type Class = MailRecord['class'];
const classes: readonly Class[] = ['billing', 'deployment', 'marketing'];

/** The mail classes that reach a user with these settings. */
async function reached(wishes: { wantsDeploymentMail: boolean; wantsMarketingMail: boolean }) {
  const { deps, store } = await openBooks();
  for (const mailClass of classes) {
    const news = { class: mailClass, kind: mailClass, dedupeKey: mailClass, subject: 's', text: 't' };
    for (let time = 0; time < 2; time++)
      await store.transact((tx) => queueMail(deps, tx, user(wishes), news as never));
  }
  const mails = await store.read.mail.list({ limit: 10 });
  return mails.map(({ class: mailClass }) => mailClass).toSorted();
}

it.each([
  [true, true, ['billing', 'deployment', 'marketing']],
  [false, true, ['billing', 'marketing']],
  [true, false, ['billing', 'deployment']],
  [false, false, ['billing']],
])(
  'with deployment mail %s and marketing mail %s: %s, each once [mail-preferences]',
  async (ofDeployments, ofMarketing, expected) => {
    const wishes = { wantsDeploymentMail: ofDeployments, wantsMarketingMail: ofMarketing };
    expect(await reached(wishes)).toEqual(expected);
  },
);
