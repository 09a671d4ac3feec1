// What is typed into the search, as its worker should read it. The worker takes "-" and "+" before a word for "without" and
// "must", so that a pasted --option ends it with an error; and it looks for each word as the beginning of others, so that
// "to" finds torch. Words that its index leaves out go, but for the last one, which may become longer.
(() => {
  "use strict"
  const QUERY = 2 // the type of a message to the worker of the search
  const LEFT_OUT = new Set(
    `a about all am an and any are as at be because been but by can could did do does else ever for from get got had has
    have how however i if in into is it its just let like may me might most must my no nor not of off often on only or
    other our own rather should since so some than that the their them then there these they this to too us was we were
    what when where which while who why will with would yet you your`.split(/\s+/),
  )
  const asRead = (typed) => {
    const words = typed.replace(/(^|\s)[-+]+(?=\S)/g, "$1").split(/\s+/)
    return words.filter((word, place) => place === words.length - 1 || !LEFT_OUT.has(word.toLowerCase())).join(" ")
  }
  const send = Worker.prototype.postMessage
  Worker.prototype.postMessage = function (message, ...more) {
    const typed = message?.type === QUERY && typeof message.data === "string"
    return send.call(this, typed ? { ...message, data: asRead(message.data) } : message, ...more)
  }
})();

// The filter above the index of the rules. Without this script the page is the plain list, grouped by subject.
(() => {
  "use strict"
  const place = document.getElementById("rule-filter")
  if (!place) return
  place.innerHTML = `
    <label>Filter <input type="search" placeholder="DOC1, driver, cu130, ..." autocomplete="off"></label>
    <label>Severity <select>
      <option value="">all</option><option>error</option><option>warning</option><option>note</option>
    </select></label>
    <output aria-live="polite"></output>`
  const [text, severity, count] = ["input", "select", "output"].map((name) => place.querySelector(name))

  // Sections in the order of the page: an area (h2) holds subjects (h3), and a subject holds the rows of its table.
  const areas = []
  for (const element of place.parentElement.children) {
    if (element.tagName === "H2") areas.push({ elements: [element], subjects: [] })
    else if (element.tagName === "H3") areas.at(-1).subjects.push({ elements: [element], rows: [] })
    else if (areas.length) {
      const { subjects, elements } = areas.at(-1)
      const rows = element.querySelectorAll("tbody tr")
      if (rows.length) subjects.at(-1).rows.push(...rows)
      ;(subjects.at(-1)?.elements ?? elements).push(element)
    }
  }
  const words = (element) => element.textContent.toLowerCase()
  const show = (elements, shown) => elements.forEach((element) => { element.hidden = !shown })

  const filter = () => {
    const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean)
    let found = 0
    for (const area of areas) {
      let inArea = 0
      for (const { elements, rows } of area.subjects) {
        const about = `${words(area.elements[0])} ${words(elements[0])}`
        const matching = rows.filter((row) => {
          const of = row.children[1].textContent.trim()
          return (!severity.value || of === severity.value) && wanted.every((word) => `${about} ${words(row)}`.includes(word))
        })
        show(rows, false)
        show(matching, true)
        show(elements, matching.length > 0)
        inArea += matching.length
      }
      show(area.elements, inArea > 0)
      found += inArea
    }
    count.textContent = found === 1 ? "1 rule" : `${found} rules`
  }
  place.addEventListener("input", filter)
  filter()
})();
