"""[[focus]] and the weights of [opic]: the virtual page pays some pages more than others (P1 5.2; opic/focus.py).

page_classes.py   the class of each page at the virtual page
interest.py       the pages that lead to documents
value_column.py   what a plug-in says that pages are worth
"""
