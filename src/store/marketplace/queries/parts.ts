import type { Reader, Transaction } from '../../../marketplace/model/store.ts';
import { withErrors } from '../../queries/with-errors.ts';
import type { Connection } from './connection.ts';
import { deploymentReader, deploymentWriter } from './deployments.ts';
import { discountReader, discountWriter } from './discounts.ts';
import { keyReader, keyWriter } from './keys.ts';
import { leaseWriter } from './leases.ts';
import { ledgerReader, ledgerWriter } from './ledger.ts';
import { lossReader, lossWriter } from './losses.ts';
import { mailReader, mailWriter } from './mail.ts';
import { settingReader, settingWriter } from './settings.ts';
import { sshKeyReader, sshKeyWriter } from './ssh-keys.ts';
import { stockAlertReader, stockAlertWriter } from './stock-alerts.ts';
import { teamReader, teamWriter } from './teams.ts';
import { userReader, userWriter } from './users.ts';
import { volumeReader, volumeWriter } from './volumes.ts';

/** `toCoreError` gives what a query threw the name that the core knows. */
export function readerOn(connection: Connection, toCoreError: (error: unknown) => unknown): Reader {
  const wrapPart = <Part extends object>(part: Part): Part => withErrors(part, toCoreError);
  return {
    users: wrapPart(userReader(connection)),
    keys: wrapPart(keyReader(connection)),
    teams: wrapPart(teamReader(connection)),
    discounts: wrapPart(discountReader(connection)),
    stockAlerts: wrapPart(stockAlertReader(connection)),
    sshKeys: wrapPart(sshKeyReader(connection)),
    deployments: wrapPart(deploymentReader(connection)),
    volumes: wrapPart(volumeReader(connection)),
    ledger: wrapPart(ledgerReader(connection)),
    losses: wrapPart(lossReader(connection)),
    mail: wrapPart(mailReader(connection)),
    settings: wrapPart(settingReader(connection)),
  };
}

export function transactionOn(connection: Connection): Transaction {
  return {
    users: userWriter(connection),
    keys: keyWriter(connection),
    teams: teamWriter(connection),
    discounts: discountWriter(connection),
    stockAlerts: stockAlertWriter(connection),
    sshKeys: sshKeyWriter(connection),
    deployments: deploymentWriter(connection),
    volumes: volumeWriter(connection),
    ledger: ledgerWriter(connection),
    losses: lossWriter(connection),
    mail: mailWriter(connection),
    leases: leaseWriter(connection),
    settings: settingWriter(connection),
  };
}
