import { type Operation, splitInput } from '../operation.ts';
import { actionPath } from './action-pages.ts';
import type { PageRequest } from './deps.ts';
import { type Choice, fieldOf } from './fields.ts';
import { csrfField } from './layout.ts';
import { type Html, html } from './parts.ts';

/**
 * A form with a field for each input of the action. Its button leads to the page that shows what would happen, or does
 * it where there is no such page. `choices`: suggestions by the name of the field.
 */
export function fieldsForm<Deps>(
  action: Operation<Deps>,
  { query, session }: PageRequest,
  choices: Readonly<Record<string, readonly Choice[]>>,
): Html {
  const { params, rest } = splitInput(action);
  const { dry_run: _, ...fields } = { ...params, ...rest };
  const { name, form, summary, description } = action;
  const isPlanned = (action.dryRun ?? form?.preview) !== undefined;
  return html`<form class="card" id="${name}" method="${isPlanned ? 'get' : 'post'}" action="/console${actionPath(name)}">
<h2>${summary}</h2><p class="soft small">${description}</p>${isPlanned ? '' : csrfField(session.csrf)}
<div class="row">${Object.entries(fields).map(([field, schema]) =>
    fieldOf(`${name}-${field}`, field, schema, query(field), choices[field] ?? []),
  )}<button class="primary">${form?.button}${isPlanned ? ' …' : ''}</button></div></form>`;
}
